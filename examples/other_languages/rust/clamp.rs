// SPDX-License-Identifier: Apache-2.0
//! clamp(x, low, high): rustc -O --edition=2021 --crate-type=cdylib clamp.rs -o libclamp.so
use std::ffi::{c_char, c_void};
#[repr(C)]
pub struct Tensor { data: *mut f32, device: [i32; 2], ndim: i32, dtype: u32, shape: *const i64,
                    strides: *const i64, byte_offset: u64 }
#[repr(C)] // and more functions
pub struct Services { n_bytes: u64, fail: extern "C" fn(&Call, i32, i32, *const c_char) -> i32 }
#[repr(C)]
pub struct Call { struct_bytes: u32, abi_version: u32, device: [i32; 2], stream: *mut c_void,
                  tensors: *const Tensor, outputs: *const Tensor, scalars: *const [f64; 2],
                  none_mask: u64, n_tensors: u32, n_scalars: u32, fault: *mut c_void,
                  services: *const Services }

#[no_mangle]
pub unsafe extern "C" fn clamp_host(call: &Call) -> i32 {
    let (x, y, s) = (&*call.tensors, &*call.outputs, call.scalars);
    let (low, high) = ((*s)[0] as f32, (*s.add(1))[0] as f32);
    if !(low <= high) {
        let text = format!("low: got {low}, expected at most high, {high}\0");
        return ((*call.services).fail)(call, 100, 0, text.as_ptr().cast());
    }
    let n: i64 = (0..x.ndim as usize).map(|d| *x.shape.add(d)).product();
    (0..n as usize).for_each(|i| *y.data.add(i) = (*x.data.add(i)).clamp(low, high));
    0
}

#[repr(C, align(4))]
struct Note<const N: usize> { owner_bytes: u32, text_bytes: u32, kind: u32, owner: [u8; 8],
                              text: [u8; N] }
macro_rules! note {
    ($name:ident, $kind:expr, $text:expr) => {
        #[used] #[link_section = ".note.cuplug"]
        static $name: Note<{ $text.len() }> = Note { owner_bytes: 8, text_bytes: $text.len() as u32,
            kind: $kind, owner: *b"cuplug\0\0", text: *$text };
    };
}
note!(PLUGIN, 0x70756332, b"abi=2.0\0name=clamp\0version=1.0\0");
note!(CLAMP, 0x6f756332, b"host=clamp_host\0\
    signature=clamp(x: float32[...], low: float32, high: float32) -> float32[...]\0");
