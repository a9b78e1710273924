//! Random and damaged input to every parser of foreign data: none may panic.
//!
//! Each case depends on the seed and its number alone. The seed is printed. It is always the same, unless
//! `ATELIER_FUZZ_SEED` is another number, or `random`. An input that causes a panic is kept, and its path is printed.

use std::{
    fs,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use atelier::{
    completion::tickets,
    config::{Config, Overrides},
    people::Key,
    releases::packed_release::unpack,
};
use atelier_core::{
    domain::{Article, ArticleId, Customer, CustomerId, Method, OpenOutfit, Outfit, Schema, Timestamp},
    util::http_client::Origin,
};
use atelier_engine::release::{Manifest, Release};
use atelier_files::{Dialect, InputFormat, Table, read_open};
use flate2::{Compression, write::GzEncoder};
use tempfile::TempDir;

use crate::{
    Ran,
    chance::Chance,
    report::{Form, Report},
    requests::Requests,
    server::models,
};

/// A parser under test. `folder` belongs to its thread.
struct Target {
    name: String,
    /// Cases of the two forms.
    cases: [u64; 2],
    corpus: Vec<Vec<u8>>,
    read: Reader,
}

type Reader = Box<dyn Fn(&[u8], &Path) + Sync>;

pub fn run(form: Form) -> Ran {
    let seed = seed()?;
    // Printed at once, and each target when it starts: a crash of the process would leave no report.
    println!("\nseed {seed}");
    let mut report = Report::default();
    report.figure("seed", seed);
    let mut total = 0;
    for target in targets()? {
        let cases = form.pick(target.cases[0], target.cases[1]);
        println!("{}: {cases} cases", target.name);
        let began = Instant::now();
        let panicked = hammer(&target, seed, cases)?;
        total += cases;
        report.decimal(&format!("{}_seconds", target.name), began.elapsed().as_secs_f64());
        report.promise(panicked.is_empty(), format!("{} panicked on {panicked:?}", target.name));
    }
    report.figure("cases", total);
    Ok(report)
}

/// The same for all, so that no change fails by luck, unless another one is asked for.
pub fn seed() -> Result<u64> {
    match std::env::var("ATELIER_FUZZ_SEED").as_deref() {
        Ok("random") => Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros())?),
        Ok(seed) => seed.parse().context("ATELIER_FUZZ_SEED is a whole number, or random"),
        Err(_) => Ok(20_260_729),
    }
}

fn targets() -> Result<Vec<Target>> {
    let (demo, fixtures) =
        (models().join("demo"), Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures"));
    let schema = Arc::new(atelier_files::read_folder_schema(&demo)?);
    let mut targets = Vec::new();
    let mut add = |name: &str, cases, corpus, read: Reader| {
        targets.push(Target { name: name.to_owned(), cases, corpus, read });
    };
    let requests = Requests::new()?;
    let corpus = requests.corpus.clone();
    add("requests", [1500, 200_000], corpus, Box::new(move |bytes, _| _ = requests.send(bytes)));
    let tables = [
        ("articles", table::<Article> as Read),
        ("customers", table::<Customer>),
        ("outfits", table::<Outfit>),
    ];
    for (name, read) in tables {
        let text = fs::read_to_string(demo.join(format!("{name}.jsonl")))?;
        let json_lines: String = text.split_inclusive('\n').take(4).collect();
        for (format, cases, corpus) in [
            ("jsonl", [1000, 500_000], vec![json_lines.into_bytes()]),
            ("csv", [1000, 500_000], vec![CSV.into()]),
            ("parquet", [500, 150_000], parquet_of_others(&fixtures, name)?),
        ] {
            let schema = Arc::clone(&schema);
            let read = move |bytes: &[u8], folder: &Path| read(bytes, folder, format, &schema);
            add(&format!("{name}_{format}"), cases, corpus, Box::new(read));
        }
    }
    for (format, file) in
        [("google-xml", "merchant.xml"), ("google-tsv", "merchant.tsv"), ("shopify-csv", "shopify.csv")]
    {
        let (schema, parsed) = (Arc::clone(&schema), format.parse().map_err(anyhow::Error::msg)?);
        let read = move |bytes: &[u8], folder: &Path| read_feed(bytes, folder, parsed, &schema);
        add(format, [1000, 300_000], vec![fs::read(fixtures.join(file))?], Box::new(read));
    }
    let read = move |bytes: &[u8], folder: &Path| table::<OpenOutfit>(bytes, folder, "jsonl", &schema);
    add("outfits_to_complete", [1000, 300_000], vec![OPEN_OUTFIT.into()], Box::new(read));
    add("settings", [1000, 300_000], settings(), Box::new(read_settings));
    let read_schema = |bytes: &[u8], _: &Path| _ = Schema::parse(&String::from_utf8_lossy(bytes));
    add("schema", [500, 300_000], vec![fs::read(demo.join("schema.toml"))?], Box::new(read_schema));
    let manifest = fs::read(demo.join("release.json"))?;
    let read_manifest = |bytes: &[u8], _: &Path| _ = serde_json::from_slice::<Manifest>(bytes);
    add("manifest", [500, 500_000], vec![manifest.clone()], Box::new(read_manifest));
    add("packed_release", [300, 200_000], packed(&manifest)?, Box::new(unpack_release));
    add("release_folder", [300, 200_000], vec![manifest], Box::new(read_release));
    add("tickets_and_ids", [20_000, 6_000_000], tickets(), Box::new(read_ids));
    Ok(targets)
}

const OPEN_OUTFIT: &str =
    "{\"customer\":\"c-1\",\"articles\":[\"a-1\",null,\"a-2\"],\"age\":28,\"occasion\":\"office\"}\n";

/// Columns of all three tables: each reader refuses those of the others in its own way.
const CSV: &str = "id,type,brand,price,in_stock,sizes,features.age,features.preferred_colours,customer,articles,split\n\
                   a-1,coat,\"Fjell & Söhne\",10.5,true,S|M,28,grey|red,c-1,a-1|a-2|a-3|a-4,train\n\
                   a-2,boot,\"a \"\"b\"\",\n\",,false,,,,c-2,\"[\"\"a-1\"\"]\",validation\n";

/// Files of other programs.
fn parquet_of_others(fixtures: &Path, table: &str) -> Result<Vec<Vec<u8>>> {
    let paths = fixtures.read_dir()?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let is_table = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(table) && name.ends_with(".parquet")
    };
    paths.iter().filter(is_table).map(|path| Ok(fs::read(path)?)).collect()
}

type Read = fn(&[u8], &Path, &str, &Schema);

fn table<T: Table>(bytes: &[u8], folder: &Path, format: &str, schema: &Schema) {
    let path = folder.join(format!("table.{format}"));
    fs::write(&path, bytes).expect("a case can be written");
    // After a bad row come others; a broken file ends.
    if let Ok(rows) = atelier_files::read::<T>(&path, schema) {
        rows.take(100).for_each(drop);
    }
}

fn read_feed(bytes: &[u8], folder: &Path, format: InputFormat, schema: &Schema) {
    let path = folder.join("feed");
    fs::write(&path, bytes).expect("a case can be written");
    let now = Timestamp::from_millis(1_795_460_000_000);
    let file = atelier_files::open(&path).expect("it was just written");
    let rows = read_open::<Article>(file, &path, schema, Some(format), now, &Dialect::default());
    if let Ok(rows) = rows {
        rows.take(100).for_each(drop);
    }
}

fn read_release(bytes: &[u8], folder: &Path) {
    let folder = folder.join("demo");
    fs::create_dir_all(&folder).expect("a folder can be made");
    fs::write(folder.join("release.json"), bytes).expect("a case can be written");
    let _ = Release::open(&folder);
}

/// The same small release with names that fit a header, and with those of an extension; plain and compressed.
fn packed(manifest: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for folder in ["demo", &"demo/".repeat(30)] {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, contents) in [("release.json", manifest), ("c.onnx", b"onnx"), ("schema.toml", b"[a]\n")] {
            let mut header = tar::Header::new_gnu();
            header.set_size(contents.len() as u64);
            archive.append_data(&mut header, format!("{folder}/{name}"), contents)?;
        }
        all.push(archive.into_inner()?);
    }
    let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
    compressed.write_all(&all[0])?;
    all.push(compressed.finish()?);
    Ok(all)
}

/// Whatever an archive says, only one folder of plain files may be there afterwards, and nothing beside.
fn unpack_release(bytes: &[u8], folder: &Path) {
    let mut bytes = bytes.to_vec();
    for header in bytes.chunks_exact_mut(512).filter(|header| &header[257..262] == b"ustar") {
        // So that damaged headers are read, and not refused by their checksum.
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    let outside = tempfile::tempdir_in(folder).expect("a folder can be made");
    let into = outside.path().join("into");
    fs::create_dir(&into).expect("a folder can be made");
    let mut file = tempfile::tempfile().expect("a file can be made");
    file.write_all(&bytes).expect("a case can be written");
    let _ = unpack(&file, &into, 1 << 20);
    let entries = |folder: &Path| -> Vec<_> { fs::read_dir(folder).unwrap().map(Result::unwrap).collect() };
    assert_eq!(entries(outside.path()).len(), 1, "it wrote beside its folder");
    let folders = entries(&into);
    assert!(folders.len() <= 1 && folders.iter().all(|entry| entry.file_type().unwrap().is_dir()));
    for entry in folders.iter().flat_map(|folder| entries(&folder.path())) {
        assert!(entry.file_type().unwrap().is_file(), "{entry:?}");
        assert!(entry.metadata().unwrap().len() <= 1 << 20, "{entry:?}");
    }
}

/// Tickets of this version and of the one before. The signature is checked first elsewhere, and not here.
fn tickets() -> Vec<Vec<u8>> {
    let ticket = "AwEAAAAAAAAAAAAAAZqktkUABGRlbW8DZ3N1CmF1dHVtbi9nc3UEA2EtMQAKTcOkbnRlbC8xNwEB-gECYWJjZGVmZ2hpamtsAawC\
                  bW5vcHFyc3Nzc3Nzc3Nzc3Nzc3Nzcw";
    let before = "AgQEZGVtbwECAwQKYXV0dW1uL2dzdQAAAZqktkUAAwEA3AsBAQMHrAIAc3Nzc3Nzc3Nzc3Nzc3Nzcw";
    [ticket, before, "c-17", "Ä#%41&😀'", &format!("atl_{}", "a".repeat(64))].map(Into::into).into()
}

fn read_ids(bytes: &[u8], _: &Path) {
    let text = String::from_utf8_lossy(bytes);
    let _ = tickets::read_recorded(&text);
    let _ = (CustomerId::new(&*text), ArticleId::new(&*text), Key::parse(&text));
    let _ = text.parse::<Method>();
}

fn settings() -> Vec<Vec<u8>> {
    let file = "[server]\naddress = \"127.0.0.1:8080\"\ndrain_ms = 20_000\n[database]\nurl = \"sqlite:a.db\"\n\
                [limits]\npage = 100\nkey_rate = 50\n[engine]\nworkers = 2\nremote = \"https://me:x@triton:8443\"\n";
    [file, "https://me:hunter2@[::1]:8443/", "http://triton:8000"].map(Into::into).into()
}

/// A configuration file, and the address of a model server.
fn read_settings(bytes: &[u8], folder: &Path) {
    let path = folder.join("atelier.toml");
    fs::write(&path, bytes).expect("a case can be written");
    let _ = Config::read(Some(&path), Overrides::default());
    let _ = Origin::parse(&String::from_utf8_lossy(bytes));
}

/// The folder of inputs that caused a panic.
fn hammer(target: &Target, seed: u64, cases: u64) -> Result<Vec<PathBuf>> {
    let next = AtomicU64::new(0);
    let threads = thread::available_parallelism()?.get();
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    thread::scope(|scope| {
        let work = || -> Result<Vec<PathBuf>> {
            let folder = TempDir::new()?;
            let mut panicked = Vec::new();
            loop {
                let case = next.fetch_add(1, Ordering::Relaxed);
                if case >= cases || panicked.len() > 3 {
                    return Ok(panicked);
                }
                let input = Chance::for_case(seed, case).spoil(&target.corpus);
                if catch_unwind(AssertUnwindSafe(|| (target.read)(&input, folder.path()))).is_err() {
                    fs::create_dir_all(&kept)?;
                    let path = kept.join(format!("{}-{seed}-{case}", target.name));
                    fs::write(&path, &input)?;
                    panicked.push(path);
                }
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut panicked = Vec::new();
        for thread in threads {
            panicked.extend(thread.join().expect("panics are caught")?);
        }
        Ok(panicked)
    })
}
