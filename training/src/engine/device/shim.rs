//! A device for tests: a child process that runs the kernels' own source as C, so that no GPU is needed
//! and no foreign code runs in the test. `shim.c` says how.

use std::{
    cell::RefCell,
    fs,
    io::{BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    rc::Rc,
    sync::LazyLock,
};

use sha2::{Digest, Sha256};

use super::{
    Argument, Device, DeviceError, Product,
    kernels::{Kind, SIGNATURES, SOURCE, check},
};

#[derive(Debug)]
pub(crate) struct Shim(Rc<RefCell<Pipe>>);

#[derive(Debug)]
struct Pipe {
    child: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
    /// Numbers of memory that may be used again.
    free: Vec<u32>,
    used: u32,
}

/// Memory in the child, given back when dropped.
#[derive(Debug)]
pub(crate) struct Memory {
    pipe: Rc<RefCell<Pipe>>,
    id: u32,
    length: usize,
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mut pipe = self.pipe.borrow_mut();
        pipe.send(&[3, self.id]);
        pipe.free.push(self.id);
    }
}

impl Shim {
    pub(crate) fn new() -> Self {
        static PROGRAM: LazyLock<PathBuf> = LazyLock::new(build);
        let mut child = Command::new(&*PROGRAM)
            .env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let to = BufWriter::new(child.stdin.take().unwrap());
        let from = BufReader::new(child.stdout.take().unwrap());
        Self(Rc::new(RefCell::new(Pipe { child, to, from, free: Vec::new(), used: 0 })))
    }

    fn filled(&self, words: impl ExactSizeIterator<Item = u32>) -> Memory {
        let memory = self.room(words.len());
        let mut pipe = self.0.borrow_mut();
        pipe.send(&[1, memory.id]);
        pipe.send(&words.collect::<Vec<u32>>());
        memory
    }
}

impl Device for Shim {
    type Floats = Memory;
    type Indices = Memory;

    fn name(&self) -> &'static str {
        "shim"
    }

    fn floats(&self, values: &[f32]) -> Memory {
        self.filled(values.iter().map(|value| value.to_bits()))
    }

    fn indices(&self, values: &[u32]) -> Memory {
        self.filled(values.iter().copied())
    }

    fn zeros(&self, length: usize) -> Memory {
        self.filled((0..length).map(|_| 0))
    }

    fn room(&self, length: usize) -> Memory {
        let mut pipe = self.0.borrow_mut();
        let id = pipe.free.pop().unwrap_or_else(|| {
            pipe.used += 1;
            pipe.used - 1
        });
        pipe.send(&[0, id, u32::try_from(length).unwrap()]);
        Memory { pipe: Rc::clone(&self.0), id, length }
    }

    fn multiply(
        &self,
        product: Product,
        a: (&Memory, usize),
        b: (&Memory, usize),
        out: (&mut Memory, usize),
    ) {
        let Product { rows, columns, inner, a_transposed, b_transposed, adds } = product;
        let sizes = [rows, columns, inner].map(|size| u32::try_from(size).unwrap());
        let flags = [a_transposed, b_transposed, adds].map(u32::from);
        let mut pipe = self.0.borrow_mut();
        pipe.send(&[4]);
        pipe.send(&sizes);
        pipe.send(&flags);
        for (memory, from) in [a, b, (&*out.0, out.1)] {
            pipe.send(&[memory.id, u32::try_from(from).unwrap()]);
        }
    }

    fn launch(&self, kernel: &'static str, threads: usize, arguments: &mut [Argument<'_, Self>]) {
        check(kernel, arguments);
        assert!(threads > 0, "{kernel} is launched for nothing");
        let place = names().iter().position(|name| *name == kernel).unwrap();
        let mut pipe = self.0.borrow_mut();
        pipe.send(&[5, u32::try_from(place).unwrap(), u32::try_from(arguments.len()).unwrap()]);
        for argument in arguments {
            let memory = |memory: &Memory, from: usize| [1, memory.id, u32::try_from(from).unwrap()];
            match argument {
                Argument::In(of, from) | Argument::Indices(of, from) => pipe.send(&memory(of, *from)),
                Argument::Out(of, from) => pipe.send(&memory(of, *from)),
                Argument::Count(number) => pipe.send(&[0, *number]),
                Argument::Real(number) => pipe.send(&[0, number.to_bits()]),
            }
        }
    }

    fn download(&self, values: &Memory) -> Result<Vec<f32>, DeviceError> {
        let mut pipe = self.0.borrow_mut();
        pipe.send(&[2, values.id]);
        pipe.to.flush().unwrap();
        let mut bytes = vec![0; values.length * 4];
        if pipe.from.read_exact(&mut bytes).is_err() {
            let mut said = String::new();
            pipe.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("the shim stopped, {}, and said:\n{said}", pipe.child.wait().unwrap());
        }
        Ok(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}

impl Pipe {
    fn send(&mut self, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        // A child that has stopped says why; the next download stops the test.
        let _ = self.to.write_all(&bytes);
    }
}

/// The kernels in the order in which the child numbers them.
fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = SIGNATURES.keys().copied().collect();
    names.sort_unstable();
    names
}

/// Compiles the shim beside the tests, once for each content.
fn build() -> PathBuf {
    let dispatch = dispatch();
    let digest = Sha256::digest([SOURCE, include_str!("shim.c"), &dispatch].concat());
    let beside = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let program = beside.join(format!("kernel-shim-{}", &hex::encode(digest)[..16]));
    if !program.exists() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| fs::write(folder.path().join(name), content).unwrap();
        file("shim.c", include_str!("shim.c"));
        file("kernels.inc", SOURCE);
        file("dispatch.inc", &dispatch);
        compile(folder.path());
        let partial = beside.join(format!("kernel-shim-{}", std::process::id()));
        fs::copy(folder.path().join("shim"), &partial).unwrap();
        fs::rename(partial, &program).unwrap();
    }
    program
}

fn compile(folder: &Path) {
    let words = "-std=gnu11 -O1 -g -Wall -Werror -fsanitize=address,undefined \
                 -fno-sanitize-recover=all -o shim shim.c -lm";
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output =
        Command::new(&compiler).args(words.split_whitespace()).current_dir(folder).output().unwrap_or_else(
            |error| panic!("{compiler}: {error}; the test needs the C compiler that links Rust"),
        );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// C that calls a kernel by its number, and says which kernels have threads that shuffle.
fn dispatch() -> String {
    let cases = names().into_iter().enumerate().map(|(place, name)| {
        let arguments = SIGNATURES[name].iter().enumerate().map(|(at, kind)| match kind {
            Kind::In | Kind::Out | Kind::Indices => format!("arguments[{at}].memory"),
            Kind::Count => format!("arguments[{at}].bits"),
            Kind::Real => format!("real(arguments[{at}].bits)"),
        });
        let arguments: Vec<String> = arguments.collect();
        format!("    if (kernel == {place}) {name}({});\n", arguments.join(", "))
    });
    let cases: String = cases.collect();
    let shuffles = names().into_iter().map(|name| {
        let (_, rest) = SOURCE.split_once(&format!("\nKERNEL {name}(")).unwrap();
        let body = rest.split("\nKERNEL ").next().unwrap();
        format!("{}, ", u32::from(body.contains("EACH_ROW")))
    });
    let shuffles: String = shuffles.collect();
    format!(
        "static const unsigned shuffles[] = {{{shuffles}}};\n\
         static void dispatch(unsigned kernel, const struct argument *arguments) {{\n{cases}}}\n"
    )
}
