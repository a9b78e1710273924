//! The engine's second ground: a tape whose numbers live on a device.
//!
//! A [`Device`] is what a GPU can do: hold numbers, multiply matrices, launch one of a handful of kernels
//! (`kernels/*.cu`). Above it stand a tape of its own (the same operations as the CPU's, over the whole
//! batch at once), its backward pass, and AdamW; what comes in is a [`Shard`](super::Shard) as big as the
//! batch, what goes out are losses and, when asked for, weights. It must never know a method, a file, or
//! which make of device it is; only `cuda` knows CUDA. In tests a C program plays the device (`shim`), so
//! that everything but the driver's calls is checked on any machine.
//!
//! Work is only queued, in order. What goes wrong is kept by the device and told by the next
//! [`Device::download`]; until then every call is taken and does nothing.

mod adamw;
mod backward;
mod cuda;
mod head;
mod kernels;
mod launches;
mod packed;
mod parameters;
#[cfg(all(test, target_os = "linux"))]
pub(crate) mod shim;
mod sums;
mod tape;
mod unattend;

use std::fmt;

pub(crate) use cuda::Cuda;
pub(crate) use head::{Hidden, Learned};
pub(crate) use packed::{Packed, ShardKeys};
pub(crate) use parameters::Parameters;
pub(crate) use sums::Learning;
pub(crate) use tape::DeviceTape;

/// A machine that computes: memory, matrix products, kernels.
pub(crate) trait Device: fmt::Debug {
    type Floats: fmt::Debug;
    type Indices: fmt::Debug;

    /// What people call it.
    fn name(&self) -> &str;

    fn floats(&self, values: &[f32]) -> Self::Floats;

    fn indices(&self, values: &[u32]) -> Self::Indices;

    /// Zeros.
    fn zeros(&self, length: usize) -> Self::Floats;

    /// Whatever was there: to be written before it is read.
    fn room(&self, length: usize) -> Self::Floats;

    /// `out` = or += a b, from each place given.
    fn multiply(
        &self,
        product: Product,
        a: (&Self::Floats, usize),
        b: (&Self::Floats, usize),
        out: (&mut Self::Floats, usize),
    );

    /// Runs a kernel with about so many threads; it is right with any number.
    fn launch(&self, kernel: &'static str, threads: usize, arguments: &mut [Argument<'_, Self>]);

    /// # Errors
    /// The first thing that went wrong since the device was opened.
    fn download(&self, values: &Self::Floats) -> Result<Vec<f32>, DeviceError>;
}

/// out [rows × columns] = a [rows × inner] b [inner × columns], all row-major; a transposed matrix lies in
/// memory with its axes swapped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Product {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) inner: usize,
    pub(crate) a_transposed: bool,
    pub(crate) b_transposed: bool,
    /// Whether to add to what is there.
    pub(crate) adds: bool,
}

/// What a kernel is given: memory from some place on, or a number.
#[derive(Debug)]
pub(crate) enum Argument<'a, D: Device + ?Sized> {
    In(&'a D::Floats, usize),
    Out(&'a mut D::Floats, usize),
    Indices(&'a D::Indices, usize),
    Count(u32),
    Real(f32),
}

impl<'a, D: Device> Argument<'a, D> {
    fn read(values: &'a D::Floats) -> Self {
        Self::In(values, 0)
    }

    fn write(values: &'a mut D::Floats) -> Self {
        Self::Out(values, 0)
    }

    fn size(number: usize) -> Self {
        Self::Count(count(number))
    }
}

/// Neighbouring threads that share a row in the kernels that add rows up; `LANES` there.
const LANES: usize = 32;

/// Why a device does not do what it is asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DeviceError {
    #[error(
        "--device cuda found no {missing}. It needs an NVIDIA driver (libcuda), and libnvrtc and libcublas \
         of CUDA 12 or 13, by the loader's paths: {found}. A driver comes with the machine; the other two \
         come without a toolkit by `pip install nvidia-cuda-nvrtc nvidia-cublas` (for a CUDA 12 driver \
         `nvidia-cuda-nvrtc-cu12 nvidia-cublas-cu12`), whose folders nvidia/*/lib in site-packages then go \
         into LD_LIBRARY_PATH. Or train with --device cpu"
    )]
    Libraries { missing: String, found: String },
    #[error("the GPU: {what} said {said}; {advice}")]
    Failed { what: String, said: String, advice: &'static str },
    #[error(
        "{what} needs {numbers} numbers in one piece, and a GPU's kernels count to 2^31; use a smaller --batch \
         or train with --device cpu"
    )]
    TooLarge { what: &'static str, numbers: usize },
    #[error("a GPU does not learn from pairs: set the pairs' weight to 0, or train with --device cpu")]
    Pairs,
    #[error(
        "a GPU does not learn what articles have in common: leave --attributes out, or train with --device cpu"
    )]
    Attributes,
}

/// # Errors
/// If kernels cannot count so many numbers.
pub(crate) fn countable(what: &'static str, numbers: usize) -> Result<(), DeviceError> {
    if numbers < 1 << 31 { Ok(()) } else { Err(DeviceError::TooLarge { what, numbers }) }
}

/// A count as kernels take it.
fn count(number: usize) -> u32 {
    u32::try_from(number).expect("sizes were checked against 2^31; this is a bug")
}
