/* SPDX-License-Identifier: Apache-2.0 */
/* Powers of float64: see powers.h. The error is below 0.7 units in the last place. */
#if CUPLUG_HAS_POWERS
#define CUPLUG_POW cuplug_power_double
CUPLUG_LANES(double, unsigned long long, long long,
             __builtin_ia32_vfmaddpd512_mask(a, b, c, (unsigned char)-1, 4),
             __builtin_ia32_ucmpq512_mask(a, b, 5, (unsigned char)-1))
CUPLUG_POWER_CALLS(double, 4, 2, pow)
#define CUPLUG_AT(table, at) __builtin_shuffle(table[0], table[1], at)

static cuplug_lanes_double cuplug_powers_double(cuplug_lanes_double x, cuplug_lanes_double y)
    CUPLUG_BESIDE("_ZGVeN8vv_cuplug_power_double");
static cuplug_lanes_double cuplug_powers_double(cuplug_lanes_double x, cuplug_lanes_double y) {
  static const cuplug_lanes_double near_inverse[2] = {
      {0x1.661ec6a92ade3p+0, 0x1.571ed3c8582fep+0, 0x1.49539e3bf4129p+0, 0x1.3c995a49c0f1cp+0,
       0x1.30d19012d48ap+0, 0x1.25e22703c9711p+0, 0x1.1bb4a405c0d3dp+0, 0x1.12358e76ca754p+0},
      {0x1.0953f390889e9p+0, 0x1p+0, 0x1.e573ac97cb507p-1, 0x1.ca4b305128fd2p-1,
       0x1.b20364053aa85p-1, 0x1.9c2d14e935fc4p-1, 0x1.886e5f058109fp-1, 0x1.767dce44df91ep-1}};
  static const cuplug_lanes_double its_log[2] = {
      {-0x1.efec61c0f8p-2, -0x1.b0b67f5d9p-2, -0x1.7418acef3cp-2, -0x1.39de8e1eccp-2,
       -0x1.01d9bbce94p-2, -0x1.97c1cae91p-3, -0x1.2f9e32e38p-3, -0x1.960cafaf9p-4},
      {-0x1.a6f9c38ccp-5, 0, 0x1.3aa2fd751p-4, 0x1.476a9fb7p-3, 0x1.e840be7f78p-3,
       0x1.406463c3e4p-2, 0x1.88e9c741b8p-2, 0x1.ce0a491d68p-2}};
  static const cuplug_lanes_double rest_of_its_log[2] = {
      {-0x1.272f6a898342cp-67, 0x1.e373119245fc8p-65, 0x1.2fde3067f3d34p-68, -0x1.a6619fcaf8925p-68,
       0x1.a7e2691e4197dp-66, -0x1.1b0fb20bd3168p-63, 0x1.df829945ddf5fp-67,
       -0x1.43095dadef5d4p-64},
      {0x1.f5ec41b908a18p-67, 0, 0x1.c919f3087d2cp-58, 0x1.0877d6409aa5bp-66,
       -0x1.1927a1e517997p-66, 0x1.f2ba837d99ef3p-67, -0x1.9d3166d42c708p-65,
       0x1.05ac45a913a13p-66}};
  static const cuplug_lanes_double roots[2] = {
      {0x1p+0, 0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0,
       0x1.306fe0a31b715p+0, 0x1.3dea64c123422p+0, 0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0},
      {0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0, 0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f09p+0,
       0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0,
       0x1.ea4afa2a490dap+0}}; /* 2^(j/16) */
  static const cuplug_lanes_double rest_of_roots[2] = {
      {0, 0x1.8a62e4adc610bp-54, -0x1.19041b9d78a76p-55, 0x1.9b07eb6c70573p-54,
       0x1.6f46ad23182e4p-55, 0x1.ada0911f09ebcp-55, 0x1.d4397afec42e2p-56, 0x1.6324c054647adp-54},
      {-0x1.bdd3413b26456p-54, -0x1.41577ee04992fp-55, 0x1.6e9f156864b27p-54, 0x1.c7c46b071f2bep-56,
       0x1.7a1cd345dcc81p-54, 0x1.11065895048ddp-55, 0x1.2ed02d75b3707p-55,
       -0x1.e9c23179c2893p-54}};
  /* log2(1 + r) / r for r = 0, and its slope there */
  const double per_r = 0x1.71547652b82fep+0, rest_per_r = 0x1.777d0ffda0d24p-56;
  const double per_r2 = -0x1.71547652b82fep-1, rest_per_r2 = -0x1.777d0ffda0d24p-57;

  /* x = 2^k * z, 0.699 <= z < 1.398 */
  const cuplug_bits_double bits = (cuplug_bits_double)x, above = bits - 0x3fe6600000000000;
  const cuplug_bits_double power = above & 0xfff0000000000000;
  const cuplug_signed_double at =
      (cuplug_signed_double)(above >> 48); /* of which four bits count */
  const cuplug_lanes_double z = (cuplug_lanes_double)(bits - power);
  const cuplug_lanes_double k =
      __builtin_convertvector((cuplug_signed_double)power >> 52, cuplug_lanes_double);

  /* r, and the remainder of the product; log2(1 + r) = r * (slope + slope_rest), slope = per_r + r
   * * bend, bend = per_r2 + r * q */
  const cuplug_lanes_double c = CUPLUG_AT(near_inverse, at), product = z * c;
  const cuplug_lanes_double r = product - 1, r_rest = cuplug_mad_double(z, c, -product);
  cuplug_lanes_double q = cuplug_all_double(0x1.0d2775d9f1cc8p-3);
  q = cuplug_mad_double(r, q, cuplug_all_double(-0x1.27f3ac7451152p-3));
  q = cuplug_mad_double(r, q, cuplug_all_double(0x1.484af4cf9ca08p-3));
  q = cuplug_mad_double(r, q, cuplug_all_double(-0x1.71546137f2547p-3));
  q = cuplug_mad_double(r, q, cuplug_all_double(0x1.a61762aa86263p-3));
  q = cuplug_mad_double(r, q, cuplug_all_double(-0x1.ec709dc4f24b8p-3));
  q = cuplug_mad_double(r, q, cuplug_all_double(0x1.2776c50ef9b3ep-2));
  q = cuplug_mad_double(r, q, cuplug_all_double(-0x1.71547652b82dp-2));
  q = cuplug_mad_double(r, q, cuplug_all_double(0x1.ec709dc3a03fdp-2));
  const cuplug_lanes_double bend_2 = r * q, bend = bend_2 + per_r2;
  const cuplug_lanes_double bend_rest = (per_r2 - bend) + bend_2 + rest_per_r2;
  const cuplug_lanes_double slope_2 = r * bend, slope = slope_2 + per_r;
  cuplug_lanes_double rest = cuplug_mad_double(r, bend, -slope_2);
  rest = cuplug_mad_double(r, bend_rest, rest);
  const cuplug_lanes_double slope_rest = ((per_r - slope) + slope_2) + (rest + rest_per_r);
  const cuplug_lanes_double part = r * slope;
  rest = cuplug_mad_double(r, slope_rest, cuplug_mad_double(r, slope, -part));
  rest = cuplug_mad_double(r_rest, cuplug_mad_double(r, bend + bend_2, slope), rest);

  /* log2(x), t = y * log2(x) */
  const cuplug_lanes_double whole = k + CUPLUG_AT(its_log, at), log = whole + part;
  rest = ((whole - log) + part) + (rest + CUPLUG_AT(rest_of_its_log, at));
  const cuplug_lanes_double t = y * log;
  const cuplug_lanes_double t_rest = cuplug_mad_double(y, rest, cuplug_mad_double(y, log, -t));

  /* 2^t: the integer number of sixteenths n is in the last bits of a number whose unit it is */
  const cuplug_lanes_double sum = t + 0x1.8p48, f = (t - (sum - 0x1.8p48)) + t_rest;
  const cuplug_bits_double n = (cuplug_bits_double)sum;
  cuplug_lanes_double slow = cuplug_all_double(0x1.430a766ef2eebp-13);
  slow = cuplug_mad_double(f, slow, cuplug_all_double(0x1.5d897f170b6a5p-10));
  slow = cuplug_mad_double(f, slow, cuplug_all_double(0x1.3b2ab6fad16cdp-7));
  slow = cuplug_mad_double(f, slow, cuplug_all_double(0x1.c6b08d6f29013p-5));
  slow = cuplug_mad_double(f, slow, cuplug_all_double(0x1.ebfbdff82c597p-3));
  slow = cuplug_mad_double(f, slow, cuplug_all_double(0x1.62e42fefa39f3p-1));
  const cuplug_lanes_double root = CUPLUG_AT(roots, (cuplug_signed_double)n);
  const cuplug_lanes_double more =
      cuplug_mad_double(root, f * slow, CUPLUG_AT(rest_of_roots, (cuplug_signed_double)n));
  const cuplug_bits_double scaled = (cuplug_bits_double)(root + more);
  const cuplug_lanes_double powers =
      (cuplug_lanes_double)(scaled + ((n << 48) & 0xfff0000000000000));

  /* x is not a positive normal number, or |t| >= 1020 or NaN */
  const unsigned lanes =
      cuplug_reach_double(bits - 0x0010000000000000, 0x7fe0000000000000) |
      cuplug_reach_double((cuplug_bits_double)t & 0x7fffffffffffffff, 0x408fe00000000000);
  return __builtin_expect(lanes != 0, 0) ? cuplug_one_by_one_double(powers, x, y, lanes) : powers;
}
#endif
