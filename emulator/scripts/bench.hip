// Kernels that bench.py times. They need neither headers nor libraries. Each has the same arguments.

#define KERNEL(threads) extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads))) void
#define LOCAL(axis) ((int)__builtin_amdgcn_workitem_id_##axis())
#define GROUP(axis) ((int)__builtin_amdgcn_workgroup_id_##axis())
#define SHARED static __attribute__((shared))
#define BARRIER                                         \
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); \
  __builtin_amdgcn_s_barrier()

typedef float float4 __attribute__((ext_vector_type(4)));

// Sum of two vectors.
KERNEL(256) add(const float *a, const float *b, float *c, int n) {
  int i = GROUP(x) * 256 + LOCAL(x);
  if (i < n) c[i] = a[i] + b[i];
}

// Powers of e, of halves of the exponent where the result could be no normal number.
__attribute__((device)) float power_of_e(float x) {
  float high = x * 1.44269504f;
  float low = __builtin_fmaf(x, 1.44269504f, -high) + x * 1.92596299e-8f;
  float whole = __builtin_rintf(high);
  float part = __builtin_amdgcn_exp2f(high - whole + low);
  float result = __builtin_ldexpf(part, (int)whole);
  result = x < -103.97f ? 0.0f : result;
  return x > 88.72f ? __builtin_inff() : result;
}

KERNEL(256) exponential(const float *a, const float *b, float *c, int n) {
  int i = GROUP(x) * 256 + LOCAL(x);
  if (i < n) c[i] = power_of_e(a[i]);
}

// The error function (Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.26).
__attribute__((device)) float error_function(float x) {
  float size = __builtin_fabsf(x), t = 1.0f / (1.0f + 0.3275911f * size);
  float sum = 1.061405429f;
  sum = __builtin_fmaf(sum, t, -1.453152027f);
  sum = __builtin_fmaf(sum, t, 1.421413741f);
  sum = __builtin_fmaf(sum, t, -0.284496736f);
  sum = __builtin_fmaf(sum, t, 0.254829592f);
  return __builtin_copysignf(1.0f - sum * t * power_of_e(-size * size), x);
}

KERNEL(256) gelu(const float *a, const float *b, float *c, int n) {
  int i = GROUP(x) * 256 + LOCAL(x);
  if (i < n) c[i] = 0.5f * a[i] * (1.0f + error_function(a[i] * 0.70710678f));
}

// Sums of 256 elements each.
KERNEL(256) sum(const float *a, const float *b, float *c, int n) {
  SHARED float s[256];
  int t = LOCAL(x), i = GROUP(x) * 256 + t;
  s[t] = i < n ? a[i] : 0;
  BARRIER;
  for (int k = 128; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    BARRIER;
  }
  if (t == 0) c[GROUP(x)] = s[0];
}

// Product of n × n matrices, tiles of 64 × 64, sixteen outputs for each work item.
KERNEL(256) product_64(const float *a, const float *b, float *c, int n) {
  SHARED float as[16][68], bs[16][68];
  int t = LOCAL(x), tx = t & 15, ty = t >> 4, groups = n / 64;
  int bm = GROUP(x) / groups * 64, bn = GROUP(x) % groups * 64;
  float acc[4][4] = {};
  for (int k0 = 0; k0 < n; k0 += 16) {
    for (int e = t; e < 1024; e += 256) {
      as[e & 15][e >> 4] = a[(bm + (e >> 4)) * n + k0 + (e & 15)];
      bs[e >> 6][e & 63] = b[(k0 + (e >> 6)) * n + bn + (e & 63)];
    }
    BARRIER;
    for (int k = 0; k < 16; k++) {
      float4 av = *(float4 *)&as[k][ty * 4], bv = *(float4 *)&bs[k][tx * 4];
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) acc[i][j] += av[i] * bv[j];
    }
    BARRIER;
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) c[(bm + ty * 4 + i) * n + bn + tx * 4 + j] = acc[i][j];
}

// The same with tiles of 16 × 16, an output for each work item.
KERNEL(256) product_16(const float *a, const float *b, float *c, int n) {
  SHARED float as[16][17], bs[16][17];
  int tx = LOCAL(x) & 15, ty = LOCAL(x) >> 4, groups = n / 16;
  int row = GROUP(x) / groups * 16 + ty, column = GROUP(x) % groups * 16 + tx;
  float sum = 0;
  for (int k0 = 0; k0 < n; k0 += 16) {
    as[ty][tx] = a[row * n + k0 + tx];
    bs[ty][tx] = b[(k0 + ty) * n + column];
    BARRIER;
    for (int k = 0; k < 16; k++) sum += as[ty][k] * bs[k][tx];
    BARRIER;
  }
  c[row * n + column] = sum;
}
