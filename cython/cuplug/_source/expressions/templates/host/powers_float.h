/* SPDX-License-Identifier: Apache-2.0 */
/* Powers of float32: see powers.h. The error is below 0.6 units in the last place. */
#if CUPLUG_HAS_POWERS
#define CUPLUG_POWF cuplug_power_float
CUPLUG_LANES(float, uint32_t, int32_t,
             __builtin_ia32_vfmaddps512_mask(a, b, c, (unsigned short)-1, 4),
             __builtin_ia32_ucmpd512_mask(a, b, 5, (unsigned short)-1))
CUPLUG_POWER_CALLS(float, 8, 4, powf)

static cuplug_lanes_float cuplug_powers_float(cuplug_lanes_float x, cuplug_lanes_float y)
    CUPLUG_BESIDE("_ZGVeN16vv_cuplug_power_float");
static cuplug_lanes_float cuplug_powers_float(cuplug_lanes_float x, cuplug_lanes_float y) {
  static const cuplug_lanes_float near_inverse = {
      0x1.65f8ep+0,  0x1.56be9cp+0, 0x1.498c8ep+0, 0x1.3cfb72p+0, 0x1.3123c8p+0, 0x1.25eb86p+0,
      0x1.1c0022p+0, 0x1.1252acp+0, 0x1.08fdfp+0,  0x1p+0,        0x1.e5d298p-1, 0x1.cabf0ep-1,
      0x1.b2038p-1,  0x1.9c8e54p-1, 0x1.886218p-1, 0x1.7694b2p-1};
  static const cuplug_lanes_float its_log = {
      -0x1.ef5p-2, -0x1.af18p-2, -0x1.7518p-2, -0x1.3ba8p-2, -0x1.0368p-2,
      -0x1.982p-3, -0x1.32bp-3,  -0x1.988p-4,  -0x1.98p-5,   0,
      0x1.362p-4,  0x1.448p-3,   0x1.e84p-3,   0x1.3f08p-2,  0x1.8918p-2,
      0x1.cdbp-2};
  static const cuplug_lanes_float rest_of_its_log = {
      -0x1.1bfe94p-35, -0x1.3d84fap-31, -0x1.fbe718p-38, 0x1.45df2cp-31, -0x1.2b9fe2p-33,
      -0x1.1f3b8cp-29, 0x1.f155dp-31,   -0x1.41dac2p-38, 0x1.24aa52p-33, 0,
      0x1.465ff2p-35,  -0x1.449062p-31, 0x1.57f15p-33,   -0x1.16499p-33, -0x1.cc2b1ep-33,
      0x1.803446p-36};
  static const cuplug_lanes_float roots = {
      /* 2^(j/16) */
      0x1p+0,        0x1.0b5586p+0, 0x1.172b84p+0, 0x1.2387a6p+0, 0x1.306fep+0,  0x1.3dea64p+0,
      0x1.4bfdaep+0, 0x1.5ab07ep+0, 0x1.6a09e6p+0, 0x1.7a1148p+0, 0x1.8ace54p+0, 0x1.9c4918p+0,
      0x1.ae89fap+0, 0x1.c199bep+0, 0x1.d5818ep+0, 0x1.ea4afap+0};
  static const cuplug_lanes_float rest_of_roots = {
      0x0p+0,          0x1.9f3122p-25,  -0x1.c15742p-27, 0x1.ceac48p-25,
      0x1.4636e2p-25,  0x1.824684p-25,  -0x1.593abcp-25, -0x1.5bd5ecp-27,
      0x1.9fcef4p-26,  -0x1.829fdp-25,  0x1.15506ep-27,  0x1.51f848p-27,
      -0x1.a94b14p-26, -0x1.3d56b2p-27, -0x1.822dbcp-27, 0x1.52486cp-27};
  const float per_r = 0x1.715476p+0f, rest_per_r = 0x1.4ae0cp-26f; /* log2(1 + r) / r for r = 0 */

  /* x = 2^k * z, 0.699 <= z < 1.398 */
  const cuplug_bits_float bits = (cuplug_bits_float)x, above = bits - 0x3f330000,
                          power = above & 0xff800000;
  const cuplug_signed_float at = (cuplug_signed_float)(above >> 19); /* of which four bits count */
  const cuplug_lanes_float z = (cuplug_lanes_float)(bits - power);
  const cuplug_lanes_float k =
      __builtin_convertvector((cuplug_signed_float)power >> 23, cuplug_lanes_float);

  /* r, and the remainder of the product; log2(1 + r) = r * (slope + slope_rest) */
  const cuplug_lanes_float c = __builtin_shuffle(near_inverse, at), product = z * c;
  const cuplug_lanes_float r = product - 1, r_rest = cuplug_mad_float(z, c, -product);
  cuplug_lanes_float q =
      cuplug_mad_float(r, cuplug_all_float(-0x1.ed0a24p-3f), cuplug_all_float(0x1.27b56cp-2f));
  q = cuplug_mad_float(r, q, cuplug_all_float(-0x1.71546ep-2f));
  q = cuplug_mad_float(r, q, cuplug_all_float(0x1.ec709ap-2f));
  q = cuplug_mad_float(r, q, cuplug_all_float(-0x1.715476p-1f));
  const cuplug_lanes_float bend = r * q, slope = bend + per_r;
  const cuplug_lanes_float slope_rest = (per_r - slope) + bend + rest_per_r;
  const cuplug_lanes_float part = r * slope;
  cuplug_lanes_float rest = cuplug_mad_float(r, slope_rest, cuplug_mad_float(r, slope, -part));
  rest = cuplug_mad_float(r_rest, slope + bend, rest);

  /* log2(x), t = y * log2(x) */
  const cuplug_lanes_float whole = k + __builtin_shuffle(its_log, at), log = whole + part;
  rest = ((whole - log) + part) + rest + __builtin_shuffle(rest_of_its_log, at);
  const cuplug_lanes_float t = y * log,
                           t_rest = cuplug_mad_float(y, rest, cuplug_mad_float(y, log, -t));

  /* 2^t: the integer number of sixteenths n is in the last bits of a number whose unit it is */
  const cuplug_lanes_float sum = t + 0x1.8p19f, f = (t - (sum - 0x1.8p19f)) + t_rest;
  const cuplug_bits_float n = (cuplug_bits_float)sum;
  cuplug_lanes_float slow =
      cuplug_mad_float(f, cuplug_all_float(0x1.c6b3fap-5f), cuplug_all_float(0x1.ebff96p-3f));
  slow = cuplug_mad_float(f, slow, cuplug_all_float(0x1.62e43p-1f));
  const cuplug_lanes_float root = __builtin_shuffle(roots, (cuplug_signed_float)n);
  const cuplug_lanes_float more =
      cuplug_mad_float(root, f * slow, __builtin_shuffle(rest_of_roots, (cuplug_signed_float)n));
  const cuplug_bits_float scaled = (cuplug_bits_float)(root + more);
  const cuplug_lanes_float powers = (cuplug_lanes_float)(scaled + ((n << 19) & 0xff800000));

  /* x is not a positive normal number, or |t| >= 124 or NaN */
  const unsigned lanes = cuplug_reach_float(bits - 0x00800000, 0x7f000000) |
                         cuplug_reach_float((cuplug_bits_float)t & 0x7fffffff, 0x42f80000);
  return __builtin_expect(lanes != 0, 0) ? cuplug_one_by_one_float(powers, x, y, lanes) : powers;
}

#endif
