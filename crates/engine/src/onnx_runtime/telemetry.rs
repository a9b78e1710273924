//! Turns ONNX Runtime's telemetry off before `main`, in every program that contains this crate.
//!
//! The library of the wheel stores a device id and events in the user's home and sends them. Only a variable that is set
//! when the library starts stops that; `with_telemetry(false)` does not. Setting a variable is safe only while the
//! process has one thread, so the system's loader calls [`turn_off`] before `main`. The two programs, tests (whose
//! `main` starts threads first), benchmarks and programs of others get it alike.

use std::{env, ffi::CStr};

/// The variable that the library reads.
const VARIABLE: &CStr = c"ORT_DISABLE_TELEMETRY";

/// The list of functions that the loader calls before `main`.
#[used]
#[expect(unsafe_code, reason = "the section decides when the function is called")]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static BEFORE_MAIN: extern "C" fn() = turn_off;

/// Overrides a value that the variable already has.
extern "C" fn turn_off() {
    #[expect(unsafe_code, reason = "setting a variable is unsafe once there are threads")]
    // SAFETY: the loader calls it before `main`, in the only thread, so that no other thread reads variables.
    // Both texts end with NUL, and `setenv` copies them. It uses nothing that Rust's runtime prepares before `main`.
    unsafe {
        libc::setenv(VARIABLE.as_ptr(), c"1".as_ptr(), 1);
    }
}

/// Whether it is off. A platform whose loader has no such list leaves it on.
pub(super) fn is_off() -> bool {
    VARIABLE.to_str().is_ok_and(|name| env::var_os(name).is_some_and(|value| value == "1"))
}
