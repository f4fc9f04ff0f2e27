// Gated linear units: a function of one half of a matrix's columns, times the other half.
//
// Access: a work item has 16 bytes of both halves in several places on their way (32 of f32), neighbours beside each other.
// Bound: the bytes of matrix and result.
#include "rukh/activation.h"
#include "rukh/unit.h"

// Elements that a work item takes together.
constexpr u32 GATED_PACK = 8;

struct GatedParams {
  u64 in, out;
  // Packs of the result and of a row of it; the first pack of a row's gate and of what it is multiplied with.
  u64 packs;
  Divider columns;
  u32 gate, other;
  // Of `Activation`.
  u32 function;
};
static_assert(sizeof(GatedParams) == 48, "the mirror in providers/hip/map/gated.rs");

template <class T> DEVICE void gated(const GatedParams &p) {
  constexpr u32 TOGETHER = 2, UNITS = sizeof(T) / 2, BYTES = UNITS * 16;
  u32 first = group_id() * GROUP * TOGETHER + item_id();
  Unit gate[TOGETHER][UNITS], other[TOGETHER][UNITS];
  UNROLL
  for (u32 i = 0; i < TOGETHER; i++) {
    // Beyond the end the last pack is read again, so that no load waits for a branch.
    u32 at = first + i * GROUP < p.packs ? first + i * GROUP : (u32)p.packs - 1, row = divide(at, p.columns);
    u64 from = p.in + ((u64)row * p.columns.divisor + at) * BYTES;
    UNROLL
    for (u32 u = 0; u < UNITS; u++) {
      gate[i][u] = load_unit(from + (u64)p.gate * BYTES + u * 16);
      other[i][u] = load_unit(from + (u64)p.other * BYTES + u * 16);
    }
  }
  UNROLL
  for (u32 i = 0; i < TOGETHER; i++) {
    u32 at = first + i * GROUP;
    if (at >= p.packs) return;
    f32 x[GATED_PACK], y[GATED_PACK];
    widen_units<T>(x, gate[i]), widen_units<T>(y, other[i]);
    activate_pack<sizeof(T) == 2>(x, p.function, 0, 0);
    UNROLL
    for (u32 v = 0; v < GATED_PACK; v++) x[v] *= y[v];
    narrow_units<T>(gate[i], x);
    UNROLL
    for (u32 u = 0; u < UNITS; u++) store_unit(p.out + (u64)at * BYTES + u * 16, gate[i][u]);
  }
}

KERNEL(GROUP) gated_f32(GatedParams p) { gated<f32>(p); }
KERNEL(GROUP) gated_f16(GatedParams p) { gated<f16>(p); }
KERNEL(GROUP) gated_bf16(GatedParams p) { gated<bf16>(p); }
