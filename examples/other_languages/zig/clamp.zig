// SPDX-License-Identifier: Apache-2.0
//! clamp(x, low, high): zig build-lib -dynamic -OReleaseFast clamp.zig -femit-bin=libclamp.so
const Tensor = extern struct { data: [*c]f32, device: [2]i32, ndim: i32, dtype: u32,
    shape: [*c]const i64, strides: [*c]const i64, byte_offset: u64 };
const Fail = *const fn (*const Call, c_int, c_int, [*:0]const u8) callconv(.c) c_int;
const Call = extern struct { struct_bytes: u32, abi_version: u32, device: [2]i32, stream: ?*anyopaque,
    tensors: [*c]const Tensor, outputs: [*c]const Tensor, scalars: [*c]const [2]f64,
    none_mask: u64, n_tensors: u32, n_scalars: u32, fault: ?*anyopaque,
    services: *const Services };
const Services = extern struct { struct_bytes: u32, reserved: u32, fail: Fail };

export fn clamp_host(call: *const Call) c_int {
    const x = call.tensors[0];
    const y = call.outputs[0];
    const low: f32 = @floatCast(call.scalars[0][0]);
    const high: f32 = @floatCast(call.scalars[1][0]);
    if (!(low <= high)) {
        return call.services.fail(call, 100, 0, "low: got a number above high");
    }
    var n: usize = 1;
    for (0..@intCast(x.ndim)) |d| n *= @intCast(x.shape[d]);
    for (0..n) |i| y.data[i] = @max(low, @min(high, x.data[i]));
    return 0;
}

fn Note(comptime kind_: u32, comptime text_: []const u8) type {
    return extern struct { owner_bytes: u32 = 8, text_bytes: u32 = text_.len, kind: u32 = kind_,
        owner: [8]u8 = "cuplug\x00\x00".*, text: [text_.len]u8 = text_[0..text_.len].* };
}
export const clamp_plugin: Note(0x70756332, "abi=2.0\x00name=clamp\x00version=1.0\x00")
    linksection(".note.cuplug") = .{};
export const clamp_operator: Note(0x6f756332, "host=clamp_host\x00" ++
    "signature=clamp(x: float32[...], low: float32, high: float32) -> float32[...]\x00")
    linksection(".note.cuplug") = .{};
