//! The calls into CUDA's libraries that Rust cannot check, each with what makes it sound.

#![expect(unsafe_code, reason = "a GPU's driver, NVRTC and cuBLAS are foreign code")]

use std::{
    ffi::{CStr, CString, c_int, c_void},
    sync::Arc,
};

use cudarc::{
    cublas::{CudaBlas, result::CublasError, sys as cublas},
    driver::{
        CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DriverError, LaunchConfig,
        PushKernelArg, result as driver, sys as cuda,
    },
    nvrtc::{result as nvrtc, sys as nvrtc_sys},
};

use super::{DeviceError, Product, failed};
use crate::engine::device::LANES;

/// Threads of a block: a multiple of the kernels' LANES.
const BLOCK: u32 = 256;
/// Most blocks of a launch; what is more than their threads is done by the same threads, one after another.
const BLOCKS: u32 = 1 << 13;

/// What a kernel is passed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Passed {
    Address(u64),
    Count(u32),
    Real(f32),
}

/// # Errors
/// If a library cannot be loaded.
pub(super) fn find_libraries() -> Result<(), DeviceError> {
    // SAFETY: loading runs the libraries' initialisers; they are NVIDIA's, made for it.
    let present = unsafe {
        [
            ("libcuda", cuda::is_culib_present()),
            ("libnvrtc", nvrtc_sys::is_culib_present()),
            ("libcublas", cublas::is_culib_present()),
        ]
    };
    let missing: Vec<&str> = present.iter().filter(|(_, found)| !found).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let found = present.map(|(name, found)| format!("{name} {}", if found { "found" } else { "not found" }));
    Err(DeviceError::Libraries { missing: missing.join(", no "), found: found.join(", ") })
}

/// One stream needs no events, and freed memory is kept for the next step.
pub(super) fn set_up(context: &CudaContext) -> Result<(), DriverError> {
    let mut everything = u64::MAX;
    // SAFETY: there is one stream, so all work is in order without events. The pool is the context's own
    // device's, and the attribute is a 64-bit number that the driver copies.
    unsafe {
        context.disable_event_tracking();
        if context.has_async_alloc() {
            let pool = driver::device::get_default_mem_pool(context.cu_device())?;
            let threshold = cuda::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            driver::mem_pool::set_attribute(pool, threshold, (&raw mut everything).cast::<c_void>())?;
        }
    }
    Ok(())
}

/// The kernels as a GPU's own instructions: unlike PTX these ask nothing of the driver's version but its
/// first number.
pub(super) fn compile(source: &str, architecture: &str) -> Result<Vec<u8>, DeviceError> {
    let macros = format!(
        "#define KERNEL extern \"C\" __global__ void\n\
         #define DEVICE static __device__ __forceinline__\n\
         #define LANES {LANES}u\n"
    );
    let source = CString::new(macros + source).expect("source has no zero byte; this is a bug");
    let error = |error: nvrtc::NvrtcError| failed("NVRTC", &error);
    let program = nvrtc::create_program(&source, Some(c"atelier.cu")).map_err(error)?;
    let options = [format!("--gpu-architecture={architecture}")];
    // SAFETY: the program was made above and is destroyed below; its buffers are as long as it says.
    unsafe {
        let compiled = nvrtc::compile_program(program, &options).map_err(|code| {
            let log = nvrtc::get_program_log(program).unwrap_or_default();
            let log =
                if log.is_empty() { "" } else { CStr::from_ptr(log.as_ptr()).to_str().unwrap_or_default() };
            failed("NVRTC", &format!("{code:?} for {architecture}: {log}"))
        });
        let binary = compiled.and_then(|()| binary(program).map_err(error));
        nvrtc::destroy_program(program).map_err(error)?;
        binary
    }
}

/// # Safety
/// The program is compiled and not destroyed.
unsafe fn binary(program: nvrtc_sys::nvrtcProgram) -> Result<Vec<u8>, nvrtc::NvrtcError> {
    let mut length = 0;
    // SAFETY: the buffer is as long as the program says.
    unsafe {
        nvrtc_sys::nvrtcGetCUBINSize(program, &raw mut length).result()?;
        let mut binary = vec![0_u8; length];
        nvrtc_sys::nvrtcGetCUBIN(program, binary.as_mut_ptr().cast()).result()?;
        Ok(binary)
    }
}

pub(super) fn room(stream: &Arc<CudaStream>, length: usize) -> Result<CudaSlice<f32>, DriverError> {
    // SAFETY: any bits are a float.
    unsafe { stream.alloc(length) }
}

pub(super) fn address<T>(stream: &CudaStream, memory: &CudaSlice<T>, from: usize) -> Passed {
    let (address, _in_order) = memory.device_ptr(stream);
    Passed::Address(address + (from * size_of::<T>()) as u64)
}

pub(super) fn address_to<T>(stream: &CudaStream, memory: &mut CudaSlice<T>, from: usize) -> Passed {
    let (address, _in_order) = memory.device_ptr_mut(stream);
    Passed::Address(address + (from * size_of::<T>()) as u64)
}

pub(super) fn launch(
    stream: &CudaStream,
    kernel: &CudaFunction,
    threads: u32,
    passed: &[Passed],
) -> Result<(), DriverError> {
    let mut launch = stream.launch_builder(kernel);
    for argument in passed {
        match argument {
            Passed::Address(address) => launch.arg(address),
            Passed::Count(number) => launch.arg(number),
            Passed::Real(number) => launch.arg(number),
        };
    }
    let blocks = threads.div_ceil(BLOCK).clamp(1, BLOCKS);
    let grid = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (BLOCK, 1, 1), shared_mem_bytes: 0 };
    // SAFETY: the arguments are of the kinds that the kernel's source names (`kernels::check`), each address
    // is of live memory of this stream, and the kernels stay within what they are given, as the tests see
    // under an address sanitizer.
    unsafe { launch.launch(grid) }.map(|_| ())
}

pub(super) fn multiply(
    blas: &CudaBlas,
    product: Product,
    a: (&CudaSlice<f32>, usize),
    b: (&CudaSlice<f32>, usize),
    (out, place): (&mut CudaSlice<f32>, usize),
) -> Result<(), CublasError> {
    let Product { rows, columns, inner, a_transposed, b_transposed, adds } = product;
    let whole = |(memory, from): (&CudaSlice<f32>, usize), length: usize| {
        assert!(from + length <= memory.len(), "a product reads past its memory; this is a bug");
        (memory.device_ptr(memory.stream()).0 + (from * size_of::<f32>()) as u64) as *const f32
    };
    let (left, right) = (whole(a, rows * inner), whole(b, inner * columns));
    assert!(place + rows * columns <= out.len(), "a product writes past its memory; this is a bug");
    let stream = Arc::clone(out.stream());
    let into = (out.device_ptr_mut(&stream).0 + (place * size_of::<f32>()) as u64) as *mut f32;
    let size = |number: usize| c_int::try_from(number).expect("sizes stay below 2^31; this is a bug");
    let operation = |transposed| {
        if transposed {
            cublas::cublasOperation_t::CUBLAS_OP_T
        } else {
            cublas::cublasOperation_t::CUBLAS_OP_N
        }
    };
    // cuBLAS counts by columns, so it is given the transposed product: outᵀ = bᵀ aᵀ.
    // SAFETY: the three matrices lie within live memory, as asserted above, and `out` is borrowed alone.
    unsafe {
        cudarc::cublas::result::sgemm(
            *blas.handle(),
            operation(b_transposed),
            operation(a_transposed),
            size(columns),
            size(rows),
            size(inner),
            &raw const ONE,
            right,
            size(if b_transposed { inner } else { columns }),
            left,
            size(if a_transposed { rows } else { inner }),
            if adds { &raw const ONE } else { &raw const NOUGHT },
            into,
            size(columns),
        )
    }
}

static ONE: f32 = 1.0;
static NOUGHT: f32 = 0.0;
