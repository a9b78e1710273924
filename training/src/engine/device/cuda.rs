//! An NVIDIA GPU as a [`Device`]: kernels compiled at run time by NVRTC, products by cuBLAS, all three
//! libraries loaded when a GPU is asked for, so that neither building nor starting needs CUDA.
//!
//! Everything is queued on one stream. Products are in float32, without TF32. Calls that Rust cannot check
//! are in `calls`, and nowhere else.

mod calls;
#[cfg(test)]
mod tests;

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use cudarc::{
    cublas::CudaBlas,
    driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DeviceRepr},
    nvrtc::Ptx,
};

use self::calls::Passed;
use super::{
    Argument, Device, DeviceError, Product, count,
    kernels::{SIGNATURES, SOURCE, check},
};

/// The first GPU.
#[derive(Debug)]
pub(crate) struct Cuda {
    stream: Arc<CudaStream>,
    /// Nothing once it is dropped.
    blas: Option<CudaBlas>,
    kernels: HashMap<&'static str, CudaFunction>,
    name: String,
    /// The first thing that went wrong.
    failure: RefCell<Option<DeviceError>>,
}

/// Memory of the GPU; nothing once something went wrong.
#[derive(Debug)]
pub(crate) struct Memory<T>(Option<CudaSlice<T>>);

impl Cuda {
    /// # Errors
    /// If a library is missing, there is no GPU, or the kernels do not compile for it.
    pub(crate) fn open() -> Result<Self, DeviceError> {
        calls::find_libraries()?;
        let driver = |what: &'static str| move |error| failed(what, &error);
        let context = CudaContext::new(0).map_err(driver("opening the first GPU"))?;
        calls::set_up(&context).map_err(driver("setting up memory"))?;
        let (major, minor) = context.compute_capability().map_err(driver("asking what the GPU can do"))?;
        let binary = calls::compile(SOURCE, &format!("sm_{major}{minor}"))?;
        let module = context.load_module(Ptx::from_binary(binary)).map_err(driver("loading the kernels"))?;
        let kernels = SIGNATURES.keys().map(|&name| Ok((name, module.load_function(name)?)));
        let kernels = kernels.collect::<Result<_, _>>().map_err(driver("finding the kernels"))?;
        let stream = context.default_stream();
        let blas = CudaBlas::new(Arc::clone(&stream)).map_err(|error| failed("opening cuBLAS", &error))?;
        let name = context.name().map_err(driver("asking the GPU's name"))?;
        Ok(Self { stream, blas: Some(blas), kernels, name, failure: RefCell::new(None) })
    }

    fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    fn keep<T, E: std::fmt::Debug>(&self, what: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.failure.borrow_mut().get_or_insert(failed(what, &error)).clone()).ok()
    }

    fn filled<T: DeviceRepr>(&self, values: &[T]) -> Memory<T> {
        if self.has_failed() || values.is_empty() {
            return Memory(None);
        }
        Memory(self.keep("an upload", self.stream.clone_htod(values)))
    }
}

impl Device for Cuda {
    type Floats = Memory<f32>;
    type Indices = Memory<u32>;

    fn name(&self) -> &str {
        &self.name
    }

    fn floats(&self, values: &[f32]) -> Memory<f32> {
        self.filled(values)
    }

    fn indices(&self, values: &[u32]) -> Memory<u32> {
        self.filled(values)
    }

    fn zeros(&self, length: usize) -> Memory<f32> {
        if self.has_failed() || length == 0 {
            return Memory(None);
        }
        Memory(self.keep("an allocation", self.stream.alloc_zeros(length)))
    }

    fn room(&self, length: usize) -> Memory<f32> {
        if self.has_failed() || length == 0 {
            return Memory(None);
        }
        Memory(self.keep("an allocation", calls::room(&self.stream, length)))
    }

    fn multiply(
        &self,
        product: Product,
        a: (&Memory<f32>, usize),
        b: (&Memory<f32>, usize),
        out: (&mut Memory<f32>, usize),
    ) {
        if let (Some(left), Some(right), Some(into), Some(blas)) = (&a.0.0, &b.0.0, &mut out.0.0, &self.blas)
            && !self.has_failed()
        {
            let result = calls::multiply(blas, product, (left, a.1), (right, b.1), (into, out.1));
            self.keep("a matrix product", result);
        }
    }

    fn launch(&self, kernel: &'static str, threads: usize, arguments: &mut [Argument<'_, Self>]) {
        check(kernel, arguments);
        if self.has_failed() {
            return;
        }
        let mut passed = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let address = match argument {
                Argument::In(of, from) => of.0.as_ref().map(|of| calls::address(&self.stream, of, *from)),
                Argument::Out(of, from) => of.0.as_mut().map(|of| calls::address_to(&self.stream, of, *from)),
                Argument::Indices(of, from) => {
                    of.0.as_ref().map(|of| calls::address(&self.stream, of, *from))
                }
                Argument::Count(number) => Some(Passed::Count(*number)),
                Argument::Real(number) => Some(Passed::Real(*number)),
            };
            passed.push(address.unwrap_or(Passed::Address(0)));
        }
        let result = calls::launch(&self.stream, &self.kernels[kernel], count(threads), &passed);
        self.keep(kernel, result);
    }

    fn download(&self, values: &Memory<f32>) -> Result<Vec<f32>, DeviceError> {
        let fetched = values.0.as_ref().map(|values| {
            let fetched = self.stream.clone_dtoh(values);
            fetched.and_then(|fetched| self.stream.synchronize().map(|()| fetched))
        });
        let fetched = fetched.and_then(|fetched| self.keep("the work queued so far", fetched));
        match &*self.failure.borrow() {
            Some(failure) => Err(failure.clone()),
            None => Ok(fetched.unwrap_or_default()),
        }
    }
}

impl Drop for Cuda {
    /// cudarc panics where a GPU that failed will not close cuBLAS, and would hide what went wrong before.
    fn drop(&mut self) {
        if self.has_failed() {
            std::mem::forget(self.blas.take());
        }
    }
}

fn failed(what: &str, error: &dyn std::fmt::Debug) -> DeviceError {
    let said = format!("{error:?}");
    let advice = if said.contains("OUT_OF_MEMORY") {
        "its memory is full: use a smaller --batch, or end what else runs there"
    } else if said.contains("NO_DEVICE") || said.contains("NO_BINARY") || said.contains("INVALID_IMAGE") {
        "see what `nvidia-smi` shows, or train with --device cpu"
    } else if said.contains("ARCHITECTURE") || said.contains("arch") {
        "this libnvrtc does not know this GPU: take the CUDA version that its driver names in `nvidia-smi`"
    } else {
        "see what `nvidia-smi` shows and whether the driver fits libnvrtc and libcublas"
    };
    DeviceError::Failed { what: what.to_owned(), said, advice }
}
