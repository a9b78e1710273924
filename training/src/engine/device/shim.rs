//! A GPU for tests, played by C programs that run the kernels' own source: as a [`Device`], a child process
//! under sanitizers that checks what kernels do with memory; and as libraries to be loaded in place of the
//! driver's, which check how they are called. `shim/*.c` say how.

use std::{
    cell::RefCell,
    fmt::Write as _,
    fs,
    io::{BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    rc::Rc,
    sync::LazyLock,
};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

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
        static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
            let flags = "-fsanitize=address,undefined -fno-sanitize-recover=all";
            build("pipe", include_str!("shim/pipe.c"), flags)
        });
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

/// A folder with a driver, NVRTC and cuBLAS to be loaded in place of NVIDIA's.
pub(crate) fn libraries() -> TempDir {
    let library = build("driver", include_str!("shim/driver.c"), "-shared -fPIC");
    let folder = tempfile::tempdir().unwrap();
    for name in ["libcuda.so", "libnvrtc.so", "libcublas.so"] {
        std::os::unix::fs::symlink(&library, folder.path().join(name)).unwrap();
    }
    folder
}

/// The kernels in the order in which the child numbers them.
fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = SIGNATURES.keys().copied().collect();
    names.sort_unstable();
    names
}

/// Compiles something beside the tests, once for each content.
fn build(name: &str, main: &str, flags: &str) -> PathBuf {
    let (threads, dispatch) = (include_str!("shim/threads.h"), dispatch());
    let digest = Sha256::digest([SOURCE, threads, main, &dispatch, flags].concat());
    let beside = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let built = beside.join(format!("shim-{}-{name}", &hex::encode(digest)[..16]));
    if !built.exists() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| fs::write(folder.path().join(name), content).unwrap();
        file("main.c", main);
        file("threads.h", threads);
        file("kernels.inc", SOURCE);
        file("dispatch.inc", &dispatch);
        compile(folder.path(), flags);
        let partial = beside.join(format!("shim-{}-{name}", std::process::id()));
        fs::copy(folder.path().join("built"), &partial).unwrap();
        fs::rename(partial, &built).unwrap();
    }
    built
}

fn compile(folder: &Path, flags: &str) {
    let flags = format!("-std=gnu11 -O1 -g -Wall -Werror {flags} -o built main.c -lm");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output =
        Command::new(&compiler).args(flags.split_whitespace()).current_dir(folder).output().unwrap_or_else(
            |error| panic!("{compiler}: {error}; the test needs the C compiler that links Rust"),
        );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// C that calls a kernel by its number, and says which kernels have threads that shuffle.
fn dispatch() -> String {
    let (mut calls, mut shuffles, mut kinds) = (String::new(), String::new(), String::new());
    for (place, name) in names().into_iter().enumerate() {
        let signature = &SIGNATURES[name];
        let (_, rest) = SOURCE.split_once(&format!("\nKERNEL {name}(")).unwrap();
        let body = rest.split("\nKERNEL ").next().unwrap();
        let arguments = signature.iter().enumerate().map(|(at, kind)| match kind {
            Kind::In | Kind::Out | Kind::Indices => format!("arguments[{at}].memory"),
            Kind::Count => format!("arguments[{at}].bits"),
            Kind::Real => format!("real(arguments[{at}].bits)"),
        });
        let arguments: Vec<String> = arguments.collect();
        writeln!(calls, "    if (kernel == {place}) {name}({});", arguments.join(", ")).unwrap();
        write!(shuffles, "{}, ", u32::from(body.contains("EACH_ROW"))).unwrap();
        let is_memory = |kind: &Kind| !matches!(kind, Kind::Count | Kind::Real);
        let letters: String = signature.iter().map(|kind| if is_memory(kind) { 'm' } else { 'n' }).collect();
        write!(kinds, "\"{letters}\", ").unwrap();
    }
    format!(
        "static const char *const names[] __attribute__((unused)) = {{\"{}\"}};\n\
         static const char *const kinds[] __attribute__((unused)) = {{{kinds}}};\n\
         static const unsigned shuffles[] = {{{shuffles}}};\n\
         static void dispatch(unsigned kernel, const struct argument *arguments) {{\n{calls}}}\n",
        names().join("\", \"")
    )
}
