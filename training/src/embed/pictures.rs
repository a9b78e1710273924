//! Pictures as the numbers that an encoder reads, as `preprocessor_config.json` says.
//!
//! Resizing is Pillow's, in bytes, with which encoders were trained.

use std::{
    fs::File,
    io::{Cursor, Read},
    path::{Component, Path},
    time::{Duration, Instant},
};

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use atelier_core::util::fetch::{Address, Bounds, FetchError, Reach, Validators, fetch};
use serde::Deserialize;
use zune_core::{colorspace::ColorSpace, options::DecoderOptions};
use zune_jpeg::JpegDecoder;

/// The most bytes and pixels of a picture, and how long a server may take for one.
const BYTES: u64 = 20 << 20;
const PIXELS: usize = 25_000_000;
const WITHIN: Duration = Duration::from_secs(30);
const STALL: Duration = Duration::from_secs(10);
const STALL_BYTES: u64 = 1 << 16;

/// Red, green and blue of each pixel.
#[derive(Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: Vec<[u8; 3]>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Size {
    Number(usize),
    Both { height: usize, width: usize },
    Shortest { shortest_edge: usize },
}

/// `preprocessor_config.json`, as Transformers writes it. A step without its `do_…` is taken if its numbers are there.
#[derive(Debug, Deserialize)]
pub(super) struct Preprocessing {
    do_resize: Option<bool>,
    size: Option<Size>,
    resample: Option<u8>,
    do_center_crop: Option<bool>,
    crop_size: Option<Size>,
    do_rescale: Option<bool>,
    rescale_factor: Option<f32>,
    do_normalize: Option<bool>,
    image_mean: Option<[f32; 3]>,
    image_std: Option<[f32; 3]>,
}

/// Pillow's filters, by their numbers there.
#[derive(Debug, Clone, Copy)]
enum Filter {
    Bilinear,
    Bicubic,
}

impl Preprocessing {
    /// # Errors
    /// If it does not make pictures of one size, or asks for something else.
    pub(super) fn open(file: &Path) -> Result<Self> {
        let read = || -> Result<Self> {
            let read: Self = serde_json::from_slice(&std::fs::read(file)?)?;
            read.filter()?;
            read.output().context(
                "it does not say one size for all pictures; expected `size` with a height and a width, or `crop_size`",
            )?;
            Ok(read)
        };
        read().with_context(|| file.display().to_string())
    }

    /// Height and width of what the encoder reads.
    pub(super) fn output(&self) -> Option<(usize, usize)> {
        match (self.crop(), self.size()) {
            (Some(size), _) => Some(size),
            (None, Some(Size::Number(edge))) => Some((*edge, *edge)),
            (None, Some(Size::Both { height, width })) => Some((*height, *width)),
            (None, _) => None,
        }
    }

    fn size(&self) -> Option<&Size> {
        self.size.as_ref().filter(|_| self.do_resize != Some(false))
    }

    fn crop(&self) -> Option<(usize, usize)> {
        let crop = self.crop_size.as_ref().filter(|_| self.do_center_crop != Some(false))?;
        Some(match crop {
            Size::Number(edge) | Size::Shortest { shortest_edge: edge } => (*edge, *edge),
            Size::Both { height, width } => (*height, *width),
        })
    }

    fn filter(&self) -> Result<Filter> {
        Ok(match self.resample.unwrap_or(2) {
            2 => Filter::Bilinear,
            3 => Filter::Bicubic,
            other => bail!("`resample` is {other}; expected 2 (bilinear) or 3 (bicubic)"),
        })
    }

    /// The numbers of all pixels' red, then green, then blue.
    ///
    /// # Errors
    /// If it takes too many pixels to resize the picture.
    pub(super) fn prepare(&self, picture: &Picture) -> Result<Vec<f32>> {
        let filter = self.filter().expect("its filter was checked");
        let (width, height) = match (self.size(), self.crop()) {
            (None, _) => (picture.width, picture.height),
            (Some(Size::Both { height, width }), _) => (*width, *height),
            (Some(Size::Number(edge)), None) => (*edge, *edge),
            (Some(Size::Number(edge) | Size::Shortest { shortest_edge: edge }), _) => {
                let short = picture.width.min(picture.height);
                let scaled = |length: usize| edge.saturating_mul(length) / short;
                (scaled(picture.width), scaled(picture.height))
            }
        };
        let (width, height) = (width.max(1), height.max(1));
        ensure!(
            width.saturating_mul(height.max(picture.height)) <= PIXELS,
            "its {} × {} pixels would become {width} × {height}; expected at most {PIXELS} in all",
            picture.width,
            picture.height
        );
        let resized = picture.resize_and_turn(width, filter).resize_and_turn(height, filter);
        let (rows, columns) = self.output().expect("its size was checked");
        let factor =
            if self.do_rescale == Some(false) { 1.0 } else { self.rescale_factor.unwrap_or(1.0 / 255.0) };
        let is_normal = self.do_normalize != Some(false);
        let mean = self.image_mean.filter(|_| is_normal).unwrap_or([0.0; 3]);
        let deviation = self.image_std.filter(|_| is_normal).unwrap_or([1.0; 3]);
        // The middle; what is outside a smaller picture is black.
        let (left, top) = (
            resized.width.cast_signed() - columns.cast_signed(),
            resized.height.cast_signed() - rows.cast_signed(),
        );
        let (left, top) = (left.div_euclid(2), top.div_euclid(2));
        let pixel = |row: usize, column: usize| {
            let x = column.checked_add_signed(left).filter(|x| *x < resized.width)?;
            let y = row.checked_add_signed(top).filter(|y| *y < resized.height)?;
            Some(resized.pixels[y * resized.width + x])
        };
        let places = || (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let number = |(row, column), of: usize| {
            (f32::from(pixel(row, column).unwrap_or_default()[of]) * factor - mean[of]) / deviation[of]
        };
        let all = (0..3).flat_map(|of| places().map(move |place| (place, of)));
        Ok(all.map(|(place, of)| number(place, of)).collect())
    }
}

/// How errors name a picture: without the secrets of an address.
pub(super) fn show(source: &str) -> String {
    Address::parse(source, Reach::Public).map_or_else(|_| source.to_owned(), |address| address.to_string())
}

/// Reads a picture of the data folder, or fetches one that has an https address.
pub(super) fn read(source: &str, data: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if source.contains("://") {
        let bounds = Bounds {
            reach: Reach::Public,
            bytes: BYTES,
            deadline: Instant::now() + WITHIN,
            stall: STALL,
            stall_bytes: STALL_BYTES,
        };
        let address = Address::parse(source, Reach::Public).map_err(|_| {
            anyhow!(
                "`image` is no address of a public server; expected https://…, or a file of the data folder"
            )
        })?;
        fetch(&address, &Validators::default(), bounds, &mut bytes)
            .map_err(|error| explain(error).context(address.to_string()))?;
    } else {
        let path = Path::new(source);
        let is_inside =
            path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        ensure!(
            is_inside,
            "{source:?} is not inside the data folder; expected a path from there, or https://…"
        );
        let path = data.join(path);
        let file = File::open(&path).with_context(|| path.display().to_string())?;
        file.take(BYTES + 1).read_to_end(&mut bytes).with_context(|| path.display().to_string())?;
        ensure!(bytes.len() as u64 <= BYTES, "{source} has more than {BYTES} bytes");
    }
    Ok(bytes)
}

/// Without the settings of the service.
pub(super) fn explain(error: FetchError) -> Error {
    match error {
        FetchError::Address { .. } => {
            anyhow!("it leads to a private network; pictures are fetched from public servers")
        }
        FetchError::TooLarge { most } => anyhow!("it has more than {most} bytes"),
        FetchError::Stalled { bytes, within, .. } => {
            anyhow!("its server sends less than {bytes} bytes in {} s", within.as_secs())
        }
        error => error.into(),
    }
}

pub(super) fn decode(bytes: &[u8]) -> Result<Picture> {
    let check = |width: usize, height: usize| {
        ensure!(
            (1..=PIXELS).contains(&width.saturating_mul(height)),
            "it has {width} × {height} pixels; expected at most {PIXELS} in all"
        );
        Ok((width, height))
    };
    let mut orientation = None;
    let (size, channels, samples) = match bytes {
        [0xff, 0xd8, ..] => {
            let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
            let options = options.set_max_width(PIXELS).set_max_height(PIXELS);
            let mut decoder = JpegDecoder::new_with_options(Cursor::new(bytes), options);
            decoder.decode_headers()?;
            let size = decoder.dimensions().context("it has no size")?;
            let size = check(size.0, size.1)?;
            orientation = decoder.exif().and_then(|exif| find_orientation(exif));
            // The decoder fills up what is cut.
            ensure!(has_end(bytes), "it is cut");
            (size, 3, decoder.decode()?)
        }
        [0x89, b'P', b'N', b'G', ..] => {
            let mut decoder = png::Decoder::new(Cursor::new(bytes));
            decoder.set_transformations(png::Transformations::normalize_to_color8());
            let (width, height) = decoder.read_header_info()?.size();
            let size = check(width as usize, height as usize)?;
            let mut reader = decoder.read_info()?;
            let mut samples = vec![0; reader.output_buffer_size().context("it is too large")?];
            reader.next_frame(&mut samples)?;
            (size, reader.output_color_type().0.samples(), samples)
        }
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
            let mut decoder = image_webp::WebPDecoder::new(Cursor::new(bytes))?;
            let (width, height) = decoder.dimensions();
            let size = check(width as usize, height as usize)?;
            let mut samples = vec![0; decoder.output_buffer_size().context("it is too large")?];
            decoder.read_image(&mut samples)?;
            (size, if decoder.has_alpha() { 4 } else { 3 }, samples)
        }
        _ => bail!("it is no JPEG, PNG or WebP picture"),
    };
    let pixel = |samples: &[u8]| match *samples {
        [grey] => [grey; 3],
        [grey, alpha] => [grey; 3].map(|sample| on_white(sample, alpha)),
        [red, green, blue] => [red, green, blue],
        [red, green, blue, alpha] => [red, green, blue].map(|sample| on_white(sample, alpha)),
        _ => unreachable!("pictures have one to four channels"),
    };
    let pixels: Vec<[u8; 3]> = samples.chunks_exact(channels).map(pixel).collect();
    let (width, height) = size;
    ensure!(pixels.len() == width * height, "it is cut");
    Ok(Picture { width, height, pixels }.orient(orientation.unwrap_or(1)))
}

/// Whether a JPEG has its end. Cameras write more behind it, such as films.
fn has_end(jpeg: &[u8]) -> bool {
    let mut at = 0;
    while let Some([first, second]) = jpeg.get(at..at + 2) {
        at += match (first, second) {
            (0xff, 0xd9) => return true,
            // Not a marker, or one without a length.
            (0xff, 0x00 | 0x01 | 0xd0..=0xd8) => 2,
            (0xff, 0x02..=0xfe) => {
                let length =
                    jpeg.get(at + 2..at + 4).map_or(0, |two| usize::from(two[0]) << 8 | usize::from(two[1]));
                2 + length
            }
            _ => 1,
        };
    }
    false
}

/// How the camera was held: a number from 1 to 8 in the first table of EXIF, which is a TIFF file.
fn find_orientation(exif: &[u8]) -> Option<usize> {
    let is_reversed = exif.starts_with(b"II");
    let number = |at: usize, length: usize| {
        let mut bytes = exif.get(at..at + length)?.to_vec();
        if is_reversed {
            bytes.reverse();
        }
        Some(bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    let table = number(4, 4)?;
    let mut fields = (0..number(table, 2)?).map(|field| table + 2 + 12 * field);
    let found = fields.find(|at| number(*at, 2) == Some(0x112))?;
    number(found + 8, 2).filter(|found| (1..=8).contains(found))
}

/// Cut-outs are shown on white.
fn on_white(sample: u8, alpha: u8) -> u8 {
    let (sample, alpha) = (u32::from(sample), u32::from(alpha));
    u8::try_from((sample * alpha + 255 * (255 - alpha) + 127) / 255).expect("a mean of bytes")
}

impl Picture {
    /// As the camera was held.
    fn orient(self, orientation: usize) -> Self {
        // Rows become columns, and each pixel stays as it is.
        let mut turned =
            if orientation > 4 { self.resize_and_turn(self.width, Filter::Bilinear) } else { self };
        if [2, 4, 6, 8].contains(&orientation) {
            turned.pixels.chunks_exact_mut(turned.width).for_each(<[_]>::reverse);
        }
        if [3, 4, 7, 8].contains(&orientation) {
            turned.pixels.reverse();
        }
        turned
    }

    /// Resizes the rows, and makes them columns.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "places in a picture, and bytes"
    )]
    fn resize_and_turn(&self, width: usize, filter: Filter) -> Self {
        let scale = self.width as f64 / width as f64;
        let stretch = scale.max(1.0);
        let support = filter.support() * stretch;
        let mut pixels = Vec::with_capacity(width * self.height);
        for x in 0..width {
            let centre = (x as f64 + 0.5) * scale;
            let first = (centre - support + 0.5).max(0.0) as usize;
            let last = ((centre + support + 0.5) as usize).min(self.width);
            let mut weights: Vec<f64> =
                (first..last).map(|at| filter.weight((at as f64 - centre + 0.5) / stretch)).collect();
            let sum: f64 = weights.iter().sum();
            for weight in &mut weights {
                *weight /= sum;
            }
            for row in self.pixels.chunks_exact(self.width) {
                let mut sums = [0.0; 3];
                for (pixel, weight) in row[first..last].iter().zip(&weights) {
                    sums.iter_mut().zip(pixel).for_each(|(sum, sample)| *sum += f64::from(*sample) * weight);
                }
                pixels.push(sums.map(|sum| (sum + 0.5).clamp(0.0, 255.0) as u8));
            }
        }
        Self { width: self.height, height: width, pixels }
    }
}

impl Filter {
    fn support(self) -> f64 {
        match self {
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
        }
    }

    fn weight(self, x: f64) -> f64 {
        let x = x.abs();
        match self {
            _ if x >= self.support() => 0.0,
            Self::Bilinear => 1.0 - x,
            Self::Bicubic if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
            Self::Bicubic => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
        }
    }
}
