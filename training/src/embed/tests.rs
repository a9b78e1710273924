use std::{fs, path::PathBuf, time::Duration};

use atelier_core::util::fetch::FetchError;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    pictures::{Picture, Preprocessing, decode, explain},
    *,
};
use crate::{
    engine::Tensor,
    export::{
        proto::DataType,
        tests::{ONNX_RUNTIME, write_node},
    },
    testing::{assert_has, lines},
};

/// A data folder, and an encoder for pictures of two by two pixels and for four words.
struct Folders(TempDir);

const WORDS: [[f32; 2]; 5] = [[1.0, 1.0], [0.0, 0.0], [3.0, 0.0], [0.0, 4.0], [-3.0, 0.0]];
const VECTORS: &str = "last_hidden_state";

impl Folders {
    fn new() -> Self {
        let folders = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(folders.at("data/photos")).unwrap();
        fs::create_dir_all(folders.at("encoder/onnx")).unwrap();
        folders.write("encoder/LICENSE", "Apache-2.0");
        let preprocessing = json!({
            "do_resize": true, "size": {"height": 2, "width": 2}, "resample": 3, "rescale_factor": 1.0 / 255.0,
            "image_mean": [0.0, 0.5, 0.0], "image_std": [1.0, 0.5, 1.0]
        });
        folders.write("encoder/preprocessor_config.json", preprocessing.to_string());
        let tokenizer = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
            "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
            "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, ".": 1, "coat": 2, "warm": 3, "cold": 4}}
        });
        folders.write("encoder/tokenizer.json", tokenizer.to_string());
        let pixels = [("pixel_values", DataType::Float, &[-1, 3, 2, 2][..])];
        let vision = folders.at("encoder/onnx/vision_model.onnx");
        write_node(&vision, ("Identity", &["pixel_values"]), None, &pixels, (VECTORS, &[-1, 3, 2, 2]));
        let words = Tensor { name: "words".to_owned(), shape: vec![5, 2], data: WORDS.concat() };
        let tokens = ["input_ids", "attention_mask"].map(|name| (name, DataType::Int64, &[-1, -1][..]));
        let text = folders.at("encoder/onnx/text_model.onnx");
        write_node(
            &text,
            ("Gather", &["words", "input_ids"]),
            Some(&words),
            &tokens,
            (VECTORS, &[-1, -1, 2]),
        );
        folders
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.at(path), bytes).unwrap();
    }

    fn write_articles(&self, articles: &[Value]) {
        self.write("data/articles.jsonl", lines(articles.iter().cloned()));
    }

    fn embed(&self) -> Result<Vec<Embedded>> {
        embed(&self.at("data"), &self.at("encoder"), &ONNX_RUNTIME, &mut |_, _, _| {})
    }

    #[track_caller]
    fn assert_refused(&self, reasons: &[&str]) {
        assert_has(&format!("{:#}", self.embed().unwrap_err()), reasons);
    }

    fn articles(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.at("data/articles.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn embeddings(&self) -> Vec<Value> {
        self.articles().iter_mut().map(|article| article["embedding"].take()).collect()
    }
}

/// Without samples it is cut off after its header.
fn png(width: u32, height: u32, kind: png::ColorType, samples: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(kind);
    let mut writer = encoder.write_header().unwrap();
    if let Some(samples) = samples {
        writer.write_image_data(samples).unwrap();
    }
    drop(writer);
    bytes
}

fn is_near(found: &Value, expected: &[f64]) {
    let found: Vec<f64> = found.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect();
    let apart = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(found.len() == expected.len() && apart < 1e-6, "{found:?} instead of {expected:?}");
}

#[test]
fn pictures_and_texts_become_lists_of_the_embedding() {
    let folders = Folders::new();
    folders.write("data/photos/red.png", png(4, 4, png::ColorType::Rgb, Some(&[255, 0, 0].repeat(16))));
    folders.write("data/photos/huge.png", png(9000, 9000, png::ColorType::Rgb, None));
    folders.write("outside.png", png(1, 1, png::ColorType::Rgb, Some(&[0; 3])));
    let mut articles = vec![
        json!({"id": "a", "type": "coat", "name": "Warm", "image": "photos/red.png", "embedding": {"own": [7]}}),
        json!({"id": "b", "type": "coat", "description": "warm warm", "image": ["photos/none.png"]}),
        json!({"id": "c", "type": "coat", "embedding": {"image": [1]}}),
        json!({"id": "d", "type": "coat", "name": "Warm", "image": "https://me:hush@127.0.0.1/?hush", "embedding": {"image": [2]}}),
        json!({"id": "e", "type": "coat", "image": "photos/huge.png"}),
        json!({"id": "f", "type": "coat", "image": "photos/../../outside.png"}),
        json!({"id": "g", "type": "coat", "name": "cold", "image": "http://me:hush@shop.example/a.png"}),
    ];
    folders.write_articles(&articles);
    let results = folders.embed().unwrap();
    let counts = |result: &Embedded| {
        (result.name, result.length, result.encoded, result.with, result.without, result.failed.len())
    };
    assert_eq!(
        results.iter().map(counts).collect::<Vec<_>>(),
        [("image", 3, 1, 1, 1, 5), ("text", 2, 2, 3, 3, 1)]
    );
    let failed = results.iter().flat_map(|result| &result.failed);
    let reasons: Vec<&str> = failed.map(|(_, reason)| reason.as_str()).collect();
    for (reason, expected) in reasons.iter().zip([
        "photos/none.png: No such file",
        "`image` is no address of a public server; expected https://",
        "photos/huge.png: it has 9000 × 9000 pixels; expected at most 25000000",
        "\"photos/../../outside.png\" is not inside the data folder",
        "`image` is no address of a public server; expected https://",
        "a vector of it that is zero",
    ]) {
        assert!(reason.contains(expected) && !reason.contains("hush"), "{reason}");
    }
    let found = folders.embeddings();
    for (article, list, expected) in [
        // Red is 1, green (0 − 0.5) / 0.5, blue 0.
        (0, "image", &[0.5_f64.sqrt(), -0.5_f64.sqrt(), 0.0][..]),
        // "Warm. coat": 4 and 3 over three words, of which the stop is zero.
        (0, "text", &[0.6, 0.8]),
        (0, "own", &[7.0]),
        // "coat. warm warm": padding does not count.
        (1, "text", &[3.0 / 73.0_f64.sqrt(), 8.0 / 73.0_f64.sqrt()]),
        (3, "text", &[0.6, 0.8]),
    ] {
        is_near(&found[article][list], expected);
    }
    // Lists without a vector to replace them stay.
    assert_eq!((&found[2], &found[3]["image"]), (&json!({"image": [1]}), &json!([2])));

    // Nothing is done twice, but for what a kill cut.
    let second = folders.embed().unwrap();
    assert_eq!([second[0].encoded, second[1].encoded], [0, 0]);
    assert_eq!(folders.embeddings(), found);
    let mut kept = fs::read_dir(folders.at("data")).unwrap().map(|entry| entry.unwrap().path());
    let kept = kept.find(|path| path.to_string_lossy().contains(".embed-text-")).unwrap();
    fs::File::options().append(true).open(&kept).unwrap().set_len(4 + 40 + 39).unwrap();
    articles.push(json!({"id": "h", "type": "hat", "name": "coat"}));
    folders.write_articles(&articles);
    let third = folders.embed().unwrap();
    assert_eq!(counts(&third[1]), ("text", 2, 2, 4, 3, 1), "the cut one, and the new one");
    assert_eq!(folders.embeddings()[..7], found);

    // Each file makes another encoder. Its list replaces that of one before, not the shop's.
    fs::create_dir(folders.at("encoder/1_Pooling")).unwrap();
    for file in ["tokenizer.json", "1_Pooling/config.json", "onnx/vision_model.onnx_data"] {
        let text = fs::read(folders.at("encoder").join(file)).unwrap_or(b"{}".to_vec());
        folders.write(&format!("encoder/{file}"), [&text[..], b"\n"].concat());
        let again = folders.embed().unwrap();
        assert_eq!([again[0].encoded, again[1].encoded], [1, 3], "{file}");
    }
    assert_eq!(folders.embeddings()[..7], found);
    // It also goes where nothing is left that a list can be made of: no picture is named, or it is gone.
    let rows = folders.articles();
    let mut without = rows.clone();
    without[0].as_object_mut().unwrap().remove("image");
    for (articles, takes_first) in [(without, false), (rows, true)] {
        folders.write_articles(&articles);
        folders.write(
            "encoder/1_Pooling/config.json",
            json!({"pooling_mode_cls_token": takes_first}).to_string(),
        );
        folders.embed().unwrap();
        let lists = folders.embeddings();
        assert_eq!((&lists[0]["image"], &lists[3]["image"]), (&Value::Null, &json!([2])));
        is_near(&lists[0]["text"], if takes_first { &[0.0, 1.0] } else { &[0.6, 0.8] });
        let _gone = fs::remove_file(folders.at("data/photos/red.png"));
    }
}

#[test]
fn articles_stay_if_they_cannot_have_the_list() {
    let folders = Folders::new();
    let article = |text: &str, embedding: Value| json!({"id": "c", "type": "coat", "name": text, "embedding": embedding});
    for (article, reasons) in [
        (article("", json!([1, 2])), &["the embedding of article \"c\" is a list without a name"][..]),
        (json!({"id": "c", "type": "coat"}), &["has a picture (`image`, ", " or a text ("]),
        (
            article("warm", json!({"own": vec![1; 4095]})),
            &["article \"c\" has no room for the list \"text\" of 2 numbers"],
        ),
    ] {
        folders.write_articles(std::slice::from_ref(&article));
        folders.assert_refused(reasons);
        assert_eq!(folders.articles(), [article]);
    }

    folders.write_articles(&[json!({"id": "a", "type": "coat", "name": "warm"})]);
    let lock = fs::File::open(folders.at("data")).unwrap();
    lock.lock().unwrap();
    folders.assert_refused(&["another `embed` adds to "]);
    drop(lock);
    // There is no picture.
    assert_eq!(folders.embed().unwrap().iter().map(|result| result.with).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn an_encoder_says_what_is_missing() {
    let folders = Folders::new();
    folders.write_articles(&[json!({"id": "a", "type": "coat", "name": "warm"})]);
    let refused = |file: &str, text: &str, reasons: &[&str]| {
        folders.write(&format!("encoder/{file}"), text);
        folders.assert_refused(reasons);
    };
    let size = "expected `size` with a height and a width, or `crop_size`";
    let settings = "preprocessor_config.json";
    refused(settings, "{\"size\": {\"shortest_edge\": 9}}", &[settings, size]);
    refused(settings, "{\"size\": 2, \"resample\": 0}", &["`resample` is 0; expected 2 (bilinear)"]);
    let input = "vision_model.onnx: expected one input of floats [batch, 3, 3, 3]";
    refused(settings, "{\"size\": 3}", &[input, "found pixel_values (f32 [-1, 3, 2, 2])"]);
    let remove = |path: &str| fs::remove_file(folders.at(&format!("encoder/{path}"))).unwrap();
    remove(settings);
    fs::create_dir(folders.at("encoder/1_Pooling")).unwrap();
    let two = "{\"pooling_mode_cls_token\": true, \"pooling_mode_max_tokens\": true}";
    let last = "found the pooling lasttoken; expected mean_tokens or cls_token";
    for (pooling, reason) in [
        ("{\"pooling_mode_lasttoken\": true}", last),
        (two, "cls_token with max_tokens"),
        ("{\"pooling_mode\": \"max\"}", "found the pooling max"),
        ("[]", "1_Pooling/config.json: invalid type"),
    ] {
        refused("1_Pooling/config.json", pooling, &[reason]);
    }
    refused("tokenizer_config.json", "{", &["tokenizer_config.json: EOF"]);
    remove("tokenizer_config.json");
    fs::remove_dir_all(folders.at("encoder/1_Pooling")).unwrap();
    let text = "onnx/text_model.onnx";
    let vision = folders.at("encoder/onnx/vision_model.onnx");
    fs::rename(vision, folders.at(&format!("encoder/{text}"))).unwrap();
    folders.assert_refused(&["text_model.onnx: expected the inputs input_ids", "found pixel_values"]);
    refused(text, "nothing", &["text_model.onnx: ONNX Runtime rejects it"]);
    let none =
        "has no text_model.onnx and no model.onnx, also not in onnx/; found LICENSE, onnx, tokenizer.json";
    let nothing = "does not say what its encoder reads; found LICENSE, onnx; expected preprocessor_config.json for pictures";
    let licence = "has no licence; found onnx; put the licence of its weights there as LICENSE";
    for (file, reason) in [(text, none), ("tokenizer.json", nothing), ("LICENSE", licence)] {
        remove(file);
        folders.assert_refused(&[reason]);
    }
}

/// Against Pillow 12, over the picture whose samples are below.
#[test]
fn pictures_are_read_and_resized_as_pillow_does() {
    let folders = Folders::new();
    let sample = |at: u32| {
        let (x, y) = (at % 7, at / 7);
        let colours = [x * 37 + y * 11, x * x * 9 + y * 53, 255 - (x * 29 + y * y * 17) % 256];
        colours.map(|colour| u8::try_from(colour % 256).unwrap())
    };
    let samples: Vec<u8> = (0..35).flat_map(sample).collect();
    let coloured = png(7, 5, png::ColorType::Rgb, Some(&samples));
    let picture = decode(&coloured).unwrap();
    assert_eq!(picture.pixels.concat(), samples);
    assert_eq!(decode(&hex::decode(WEBP).unwrap()).unwrap(), picture);
    let try_preparing = |settings: Value, picture: &Picture| {
        folders.write("encoder/preprocessor_config.json", settings.to_string());
        let preprocessing = Preprocessing::open(&folders.at("encoder/preprocessor_config.json")).unwrap();
        preprocessing.prepare(picture)
    };
    let prepared = |settings: Value| {
        let numbers = try_preparing(settings, &picture).unwrap();
        let places = numbers.len() / 3;
        // As Pillow lists them: colour by colour of each pixel.
        (0..numbers.len()).map(|at| numbers[at % 3 * places + at / 3]).collect::<Vec<f32>>()
    };
    for (filter, small, large) in RESIZED {
        for (width, height, expected) in [(3, 2, &small[..]), (9, 8, &large[..])] {
            let size = json!({"height": height, "width": width});
            let found = prepared(json!({"size": size, "resample": filter, "do_rescale": false}));
            let apart =
                found.iter().zip(expected).map(|(a, b)| (a - f32::from(*b)).abs()).fold(0.0, f32::max);
            assert!(apart <= 1.0, "filter {filter}: {found:?} instead of {expected:?}");
        }
    }
    // The shortest edge stays 5, and the middle of 7 columns is cut out; a larger cut has a black rim.
    let cut = json!({"size": {"shortest_edge": 5}, "crop_size": 5, "do_rescale": false, "resample": 3});
    assert_eq!(prepared(cut)[..3], [37.0, 9.0, 226.0]);
    let size = json!({"height": 7, "width": 9});
    let wide = prepared(json!({"do_resize": false, "crop_size": size, "do_rescale": false}));
    assert_eq!((&wide[..30], &wide[30..33]), (&[0.0; 30][..], &[0.0, 0.0, 255.0][..]));

    let line = decode(&png(9000, 1, png::ColorType::Grayscale, Some(&[0; 9000]))).unwrap();
    let clip = json!({"size": {"shortest_edge": 224}, "crop_size": 224});
    let error = try_preparing(clip, &line).unwrap_err().to_string();
    assert!(error.starts_with("its 9000 × 1 pixels would become 2016000 × 224; expected at most"), "{error}");

    let jpeg = hex::decode(JPEG).unwrap();
    let Picture { width, pixels, .. } = decode(&jpeg).unwrap();
    for (at, expected) in [(0, [7, 0, 0]), (7, [111, 58, 27]), (56, [111, 55, 28]), (63, [215, 113, 64])] {
        let apart = pixels[at].iter().zip(expected).map(|(a, b)| a.abs_diff(b)).max().unwrap();
        assert!(width == 8 && apart <= 2, "{:?} instead of {expected:?}", pixels[at]);
    }
    // As cameras write how they were held, and which of these pixels come to the upper corners.
    for (orientation, corners) in
        (1..).zip([[0, 7], [7, 0], [63, 56], [56, 63], [0, 56], [56, 0], [63, 7], [7, 63]])
    {
        for exif in [
            format!("4d4d002a000000080001011200030000000100{orientation:02x}000000000000"),
            format!("49492a000800000001001201030001000000{orientation:02x}00000000000000"),
        ] {
            let segment = hex::decode(format!("ffe10022457869660000{exif}")).unwrap();
            let turned = decode(&[&jpeg[..2], &segment, &jpeg[2..]].concat()).unwrap();
            assert_eq!([turned.pixels[0], turned.pixels[7]], corners.map(|at| pixels[at]), "{exif}");
        }
    }
    // A film behind its end, with what begins a scan.
    let filmed = decode(&[&jpeg, &b"film\xff\xda"[..]].concat()).unwrap();
    assert_eq!(filmed.pixels, pixels);
    let cut_out = decode(&png(1, 1, png::ColorType::Rgba, Some(&[9, 9, 9, 0]))).unwrap();
    assert_eq!(cut_out.pixels, [[255; 3]], "cut-outs are on white");
    assert!(decode(&coloured[..60]).is_err());
    let thumbnail = hex::decode("ffe10006ffd9ffd9").unwrap();
    let without_end = &jpeg[..jpeg.len() - 3];
    for (bytes, expected) in [
        (without_end, "it is cut"),
        (&[&jpeg[..2], &thumbnail, &without_end[2..]].concat(), "it is cut"),
        (b"<html>", "it is no JPEG, PNG or WebP picture"),
    ] {
        assert_eq!(decode(bytes).unwrap_err().to_string(), expected);
    }
    let origin = "https://shop.example".to_owned().try_into().unwrap();
    let stalled = FetchError::Stalled { origin, bytes: 9, within: Duration::from_secs(1) };
    assert_eq!(explain(stalled).to_string(), "its server sends less than 9 bytes in 1 s");
}

/// By Pillow's number of the filter: three by two pixels, and the first ten of nine by eight.
const RESIZED: [(u8, [u8; 18], [u8; 30]); 2] = [
    (
        2,
        [43, 65, 201, 122, 129, 142, 201, 127, 88, 65, 171, 146, 144, 156, 115, 194, 132, 127],
        [
            0, 0, 255, 25, 6, 236, 53, 21, 213, 82, 46, 191, 111, 81, 168, 140, 130, 145, 169, 189, 123, 197,
            173, 100, 222, 68, 81, 5, 23, 248,
        ],
    ),
    (
        3,
        [36, 52, 206, 120, 134, 143, 207, 130, 82, 62, 180, 144, 148, 158, 113, 196, 129, 126],
        [
            0, 0, 255, 21, 0, 238, 52, 15, 214, 81, 40, 192, 110, 77, 169, 139, 123, 146, 168, 212, 124, 199,
            190, 100, 223, 56, 81, 3, 18, 251,
        ],
    ),
];
const WEBP: &str = "5249464648000000574542505650384c3c0000002f06000100b98ce87fec22a2ff012391a4bc25031990a7c94006fab7b81062c114f7c731836c23f11fcbb11c45011ee123d217cdb01c0f9f79e69a63";
const JPEG: &str = "ffd8ffe000104a46494600010100000100010000ffdb0043000302020302020303030304030304050805050404050a070706080c0a0c0c0b0a0b0b0d0e12100d0e110e0b0b1016101113141515150c0f171816141812141514ffdb00430103040405040509050509140d0b0d1414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414ffc00011080008000803012200021101031101ffc4001500010100000000000000000000000000000008ffc400191001000203000000000000000000000000000723334151ffc40014010100000000000000000000000000000007ffc4001c1100010305000000000000000000000000040001050313142122ffda000c03010002110311003f0098e258970d3cd002338cad79f69da363c7c76e57ffd9";
