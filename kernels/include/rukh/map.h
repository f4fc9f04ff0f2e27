// Elementwise operators with broadcasting: one kernel interprets a short program over V elements a
// work item.
//
// Access: consecutive work items touch consecutive packs of V elements of the output and of every input
// without broadcasting. Bound: bytes of all operands over the memory bandwidth; the program itself costs
// about ten instructions an operation and V elements, and stays hidden up to six operations or so.
#pragma once
#include "map_ops.h"
#include "math.h"
#include "pack.h"

constexpr int MAX_INPUTS = 8;
constexpr int MAX_RANK = 8;
constexpr int MAX_STEPS = 24;

struct Operand {
  u64 address;
  u32 type;
  // How it lies against the output: DENSE (the same order), SCALAR (one element) or STRIDED.
  u32 layout;
  // Elements between neighbours of each dimension, innermost last; 0 where it is broadcast.
  i64 strides[MAX_RANK];
};
enum Layout : u32 { DENSE = 0, SCALAR = 1, STRIDED = 2 };

struct Instruction {
  u32 op;
  // Where x comes from: FROM_INPUT + k, FROM_T0, FROM_T1, or the immediate a.
  u32 source;
  // As the bits of the type computed in.
  u64 a, b;
};
enum Source : u32 { IMMEDIATE = 0, FROM_T0 = 1, FROM_T1 = 2, FROM_INPUT = 3 };

struct MapParams {
  u64 out;
  u64 errors;
  u64 count;
  u32 out_type;
  u32 rank;
  u32 steps;
  // Whether the innermost dimension is a multiple of V, so that a pack lies within one row.
  u32 whole_packs;
  Divider dims[MAX_RANK];
  Operand in[MAX_INPUTS];
  Instruction program[MAX_STEPS];
};
static_assert(sizeof(MapParams) == 1352, "the mirror in providers/hip/map/params.rs");

template <class C, int V>
DEVICE void load_operand(C *to, const MapParams &p, const Operand &in, u64 at, int count) {
  // Elements beyond the end count as 1, which no operation objects to.
  if (in.layout == DENSE) return load_dense<C, V>(to, in.address, in.type, at, count, (C)1);
  if (in.layout == SCALAR) {
    C x = load_as<C>(in.address, in.type, 0);
    UNFOLD
    for (int v = 0; v < V; v++) to[v] = x;
    return;
  }
  UNFOLD
  for (int v = 0; v < V; v++) {
    if (v > 0 && p.whole_packs) {
      // The row goes on: only the innermost coordinate moves, by one.
      continue;
    }
    u64 rest = at + v;
    i64 offset = 0;
    for (int d = p.rank - 1; d >= 0; d--) {
      u64 outer = rest >> 31 ? rest / p.dims[d].divisor : divide((u32)rest, p.dims[d]);
      offset += (i64)(rest - outer * p.dims[d].divisor) * in.strides[d];
      rest = outer;
    }
    if (p.whole_packs) {
      i64 step = in.strides[p.rank - 1];
      if (step == 0) {
        C x = load_as<C>(in.address, in.type, offset);
        UNFOLD
        for (int w = 0; w < V; w++) to[w] = x;
      } else {
        UNFOLD
        for (int w = 0; w < V; w++) to[w] = load_as<C>(in.address, in.type, offset + w * step);
      }
    } else {
      to[v] = v < count ? load_as<C>(in.address, in.type, offset) : (C)1;
    }
  }
}

template <class T> struct Floating { static constexpr bool value = false; };
template <> struct Floating<f32> { static constexpr bool value = true; };
template <> struct Floating<f64> { static constexpr bool value = true; };
template <class C> DEVICE C immediate(u64 raw) {
  if constexpr (sizeof(C) == 4) return bits<C>((u32)raw);
  else return bits<C>(raw);
}

template <class C> DEVICE C min_(C a, C b) {
  if constexpr (Floating<C>::value)
    if (a != a) return a;
  return b < a || b != b ? b : a;
}
template <class C> DEVICE C max_(C a, C b) {
  if constexpr (Floating<C>::value)
    if (a != a) return a;
  return b > a || b != b ? b : a;
}

// Integer division and remainders; a division by zero is reported and gives 0.
template <class C> DEVICE C int_div(C a, C b, u64 errors) {
  if (b == 0) {
    report(errors, ERROR_ZERO_DIVISION);
    return 0;
  }
  return b == (C)-1 && (C)-1 < 0 ? (C)(0 - (u64)a) : a / b;
}
template <class C> DEVICE C int_mod(C a, C b, bool floor, u64 errors) {
  if (b == 0) {
    report(errors, ERROR_ZERO_DIVISION);
    return 0;
  }
  if (b == (C)-1 && (C)-1 < 0) return 0;
  C r = a % b;
  return floor && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
// The remainder of floating-point numbers by repeated exact subtraction of multiples (as fmod).
template <class C> DEVICE C float_mod(C a, C b, bool floor) {
  f64 x = abs_((f64)a), y = abs_((f64)b);
  if (!(y > 0) || !(x < infinity(x))) return not_a_number(a);
  if (y < infinity(y)) {
    while (x >= y) {
      // The largest y·2^k not above x; the subtraction is exact.
      i32 ex, ey;
      split(x, ex);
      split(y, ey);
      f64 m = scale(y, ex - ey);
      if (m > x) m = scale(y, ex - ey - 1);
      if (m < y) m = y;
      x -= m;
    }
  }
  f64 r = a < 0 ? -x : x;
  if (floor && r != 0 && (r < 0) != (b < 0)) r += (f64)b;
  if (r == 0) r = copysign_(0., floor ? (f64)b : (f64)a);
  return (C)r;
}

template <class C> DEVICE C int_pow(C x, C y) {
  if (y < 0) return x == 1 ? 1 : x == (C)-1 ? (y & 1 ? (C)-1 : 1) : 0;
  u64 r = 1, b = (u64)x;
  for (u64 e = (u64)y; e; e >>= 1, b *= b)
    if (e & 1) r *= b;
  return (C)r;
}

// One instruction on V accumulators. `op` is the same for the whole launch, so no lanes part ways.
template <class C, int V>
DEVICE void apply(u32 op, C *acc, const C *x, C *t0, C *t1, C a, C b, u64 errors) {
#define EACH(expression)                \
  UNFOLD                                \
  for (int v = 0; v < V; v++) {         \
    C y = acc[v], z = x[v];             \
    (void)y, (void)z;                   \
    acc[v] = (C)(expression);           \
  }                                     \
  break
  if constexpr (Floating<C>::value) {
    switch (op) {
    case MapDiv: EACH(y / z);
    case MapReverseDiv: EACH(z / y);
    case MapPow: EACH(pow_(y, z));
    case MapFloorMod: EACH(float_mod(y, z, true));
    case MapTruncMod: EACH(float_mod(y, z, false));
    case MapCeil: EACH(ceil_(y));
    case MapFloor: EACH(floor_(y));
    case MapRound: EACH(round_(y));
    case MapSqrt: EACH(sqrt_(y));
    case MapReciprocal: EACH(1 / y);
    case MapExp: EACH(exp_(y));
    case MapLog: EACH(log_(y));
    case MapSin: EACH(sin_(y));
    case MapCos: EACH(cos_(y));
    case MapTan: EACH(tan_(y));
    case MapAsin: EACH(asin_(y));
    case MapAcos: EACH(acos_(y));
    case MapAtan: EACH(atan_(y));
    case MapSinh: EACH(sinh_(y));
    case MapCosh: EACH(cosh_(y));
    case MapTanh: EACH(tanh_(y));
    case MapAsinh: EACH(asinh_(y));
    case MapAcosh: EACH(acosh_(y));
    case MapAtanh: EACH(atanh_(y));
    case MapErf: EACH(erf_(y));
    case MapSigmoid: EACH(sigmoid_(y));
    case MapSoftplus: EACH(softplus_(y));
    case MapSoftsign: EACH(y / (1 + abs_(y)));
    case MapElu: EACH(y < 0 ? a * expm1_(y) : y);
    case MapCelu: EACH(y < 0 ? a * expm1_(y / a) : y);
    case MapSelu: EACH(b * (y > 0 ? y : a * expm1_(y)));
    case MapLeakyRelu: EACH(y < 0 ? a * y : y);
    case MapThresholdedRelu: EACH(y > a ? y : 0);
    case MapHardSigmoid: EACH(max_((C)0, min_((C)1, fma_(a, y, b))));
    case MapHardSwish: EACH(y * max_((C)0, min_((C)1, y / 6 + (C)0.5)));
    case MapMish: EACH(y * tanh_(softplus_(y)));
    case MapGeluErf: EACH((C)0.5 * y * (1 + erf_(y * (C)0.70710678118654752440)));
    case MapGeluTanh:
      EACH((C)0.5 * y * (1 + tanh_((C)0.79788456080286535588 * (y + (C)0.044715 * y * y * y))));
    case MapSwish: EACH(y * sigmoid_(a * y));
    case MapIsNan: EACH(y != y);
    case MapIsInf: EACH((a != 0 && y == -infinity(y)) || (b != 0 && y == infinity(y)));
    case MapAbs: EACH(abs_(y));
    case MapSign: EACH(y > 0 ? 1 : y < 0 ? -1 : y);
    default: break;
    }
  } else {
    switch (op) {
    case MapDiv: case MapTruncDiv: EACH(int_div(y, z, errors));
    case MapReverseDiv: EACH(int_div(z, y, errors));
    case MapPow: EACH(int_pow(y, z));
    case MapFloorMod: EACH(int_mod(y, z, true, errors));
    case MapTruncMod: EACH(int_mod(y, z, false, errors));
    case MapBitAnd: EACH(y & z);
    case MapBitOr: EACH(y | z);
    case MapBitXor: EACH(y ^ z);
    case MapShiftLeft: EACH(z >= 0 && z < 64 ? (u64)y << (u64)z : 0);
    case MapShiftRight: EACH(z >= 0 && z < 64 ? y >> (u64)z : y < 0 ? ~(C)0 : 0);
    case MapBitNot: EACH(~y);
    case MapAbs: EACH(y < 0 ? (C)(0 - (u64)y) : y);
    case MapSign: EACH(y > 0 ? 1 : y < 0 ? -1 : 0);
    default: break;
    }
  }
  switch (op) {
  case MapLoad: EACH(z);
  case MapSave0:
    UNFOLD
    for (int v = 0; v < V; v++) t0[v] = acc[v];
    break;
  case MapSave1:
    UNFOLD
    for (int v = 0; v < V; v++) t1[v] = acc[v];
    break;
  case MapAdd: EACH(y + z);
  case MapSub: EACH(y - z);
  case MapReverseSub: EACH(z - y);
  case MapMul: EACH(y * z);
  case MapMin: EACH(min_(y, z));
  case MapMax: EACH(max_(y, z));
  case MapEqual: EACH(y == z);
  case MapLess: EACH(y < z);
  case MapLessOrEqual: EACH(y <= z);
  case MapGreater: EACH(y > z);
  case MapGreaterOrEqual: EACH(y >= z);
  case MapAnd: EACH(y != 0 && z != 0);
  case MapOr: EACH(y != 0 || z != 0);
  case MapXor: EACH((y != 0) != (z != 0));
  case MapSelect: EACH(y != 0 ? t0[v] : z);
  case MapPRelu: EACH(y < 0 ? y * z : y);
  case MapNot: EACH(y == 0);
  case MapNeg: EACH(-y);
  case MapRelu: EACH(y < 0 ? (C)0 : y);
  case MapShrink: EACH(y < -b ? y + a : y > b ? y - a : (C)0);
  default: break;
  }
#undef EACH
}

template <class C, int V> DEVICE void map(const MapParams &p) {
  u64 at = ((u64)group_id() * GROUP + item_id()) * V;
  if (at >= p.count) return;
  int count = p.count - at < V ? (int)(p.count - at) : V;
  C acc[V] = {}, t0[V] = {}, t1[V] = {};
  for (u32 s = 0; s < p.steps; s++) {
    const Instruction &step = p.program[s];
    C x[V];
    C a = immediate<C>(step.a);
    if (step.source >= FROM_INPUT) {
      load_operand<C, V>(x, p, p.in[step.source - FROM_INPUT], at, count);
    } else {
      UNFOLD
      for (int v = 0; v < V; v++) x[v] = step.source == FROM_T0 ? t0[v] : step.source == FROM_T1 ? t1[v] : a;
    }
    apply<C, V>(step.op, acc, x, t0, t1, a, immediate<C>(step.b), p.errors);
  }
  store_dense<C, V>(p.out, p.out_type, at, acc, count);
}
