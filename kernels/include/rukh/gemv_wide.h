// The row of A of a product of one row in workgroup memory as `Loads` multiply it, with what is added to it before.
//
// A normalisation multiplies each element with its scale and the whole row with a factor, which the sums of the product get
// in its place. So A passes once: nobody waits for the sum of squares, and no element is converted again for each line.
// Floats have room for what is not normalised yet.
//
// Floats of packs of eight elements lie in two planes, the first four of each pack in one and the others in the other, so
// that lanes which read neighbouring packs do not wait for each other. Packed weights have integers there (weight_fixed.h).
//
// Access: as gemv_rows.h. Between loads and the product there is one barrier.
#pragma once
#include "gemv_rows.h"

// The floats of a pack of eight as they lie.
DEVICE void read_wide(f32 (&to)[8], const Unit *low, const Unit *high) {
  Unit a = *low, b = *high;
  UNROLL
  for (u32 v = 0; v < 4; v++) to[v] = bits<f32>(a[v]), to[4 + v] = bits<f32>(b[v]);
}

// One over the root of the mean of squares.
DEVICE f32 one_over_norm(f32 square, u32 k, f32 epsilon) {
#if defined(__AMDGCN__)
  return 1 / sqrt_(square / (f32)k + epsilon);
#else
  // Errors of 2^-22, where the elements have 11 bits.
  return __nvvm_rsqrt_approx_f(fma_(square, __nvvm_rcp_approx_ftz_f((f32)k), epsilon));
#endif
}

// Puts packs that a work item has on their way at once into `x`: from `k` on, and each GEMV_ITEMS packs after the one before.
template <u32 FURTHER> DEVICE Unit load_inside(u64 from, bool inside) {
#if defined(__AMDGCN__)
  return inside ? load_unit(from + FURTHER) : Unit{};
#else
  return load_unit_if<FURTHER>(from, inside);
#endif
}
template <u32 U = 0> DEVICE void load_together(Unit (&x)[GEMV_TOGETHER], u64 from, u32 k, u32 end) {
  if constexpr (U < GEMV_TOGETHER) {
    x[U] = load_inside<U * GEMV_ITEMS * 16>(from, k + U * GEMV_ITEMS * 8 < end);
    load_together<U + 1>(x, from, k, end);
  }
}

// Adds two elements, rounded as they are stored.
DEVICE u32 add_two(f16, u32 a, u32 b) {
  typedef f16 Two __attribute__((ext_vector_type(2)));
  return bits<u32>((Two)(bits<Two>(a) + bits<Two>(b)));
}
DEVICE u32 add_two(bf16, u32 a, u32 b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  u32 sum;
  asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
#else
  return narrow_two(bf16{}, widen_one(bf16{}, a, false) + widen_one(bf16{}, b, false),
                    widen_one(bf16{}, a, true) + widen_one(bf16{}, b, true));
#endif
}

// Where a pack of A goes, in the second plane too, and behind its planes the scale that it has.
struct WidePlace {
  Unit *low, *high, *scale;

  template <class T, class Loads> DEVICE WidePlace of(const GemvParams &g, u32 pack) {
    u32 apart = gemv_row_packs<T>(g);
    Unit *low = gemv_rows + gemv_at(pack);
    return {low, low + apart, low + Loads::PLANES * apart};
  }
  // That of a pack so many further on, a multiple of 8.
  METHOD WidePlace plus(u32 packs) const {
    u32 units = gemv_at(packs);
    return {low + units, high + units, scale + units};
  }

  // Puts a pack of A there as `Loads` multiply it, and adds its squares.
  template <class T, class Loads> METHOD void put(Unit x, u32 pack, bool norm, f32 &square) const {
    f32 y[8];
    unpack_unit<T>(y, x);
    if (norm) {
      f32 by[8];
      unpack_unit<T>(by, *scale);
      UNROLL
      for (u32 v = 0; v < 8; v++) square = fma_(y[v], y[v], square), y[v] *= by[v];
    }
    Loads::put(*this, y, pack);
  }

  // As floats.
  METHOD void put_floats(const f32 (&y)[8]) const {
    Unit to[2];
    UNROLL
    for (u32 v = 0; v < 8; v++) to[v / 4][v % 4] = bits<u32>(y[v]);
    *low = to[0], *high = to[1];
  }
};

// Where row `from` lies, which needs nothing that kernels write.
template <class T> DEVICE Filling find_wide(const GemmParams &p, const GemvParams &g, u32 from, bool stores_sum, bool has_scale) {
  constexpr u32 SIZE = sizeof(T);
  Filling f = {stores_sum, has_scale, p.a + (u64)(from * p.a_row) * SIZE, 0, 0, 0};
  if (g.skip) f.skip = g.skip + (u64)(from * g.skip_row) * SIZE;
  if (g.sum && stores_sum) f.sum = g.sum + (u64)(from * g.sum_row) * SIZE;
  f.whole = p.a_column == 1 && (f.a | f.skip | f.sum) % 16 == 0 && p.k % 8 == 0 && (has_scale || !g.norm);
  have(f.a), have(f.skip), have(f.sum), have(f.whole);
  return f;
}

// Puts row `from` of A into workgroup memory; what is beyond is 0. Gives the factor of its normalisation.
template <class T, class Loads> DEVICE f32 fill_wide(const GemmParams &p, const GemvParams &g, u32 from, Filling f) {
  constexpr u32 V = 8, TOGETHER = GEMV_TOGETHER * GEMV_ITEMS;
  SHARED Unit squares;
  static_assert(GEMV_WAVES == 4 && sizeof(T) == 2, "a unit has their squares");
  u32 packs = g.row_length / V;
  f32 square = 0;
  if (f.whole) {
#pragma unroll 1
    for (u32 next = item_id(); next < packs; next += TOGETHER) {
      Unit x[GEMV_TOGETHER], added[GEMV_TOGETHER];
      // Few addresses, from which the others have constant distances, leave the registers to what is on its way.
      u32 first = opaque(next);
      u64 at = (u64)first * 16;
      load_together(x, f.a + at, first * V, p.k);
      if (f.skip) {
        load_together(added, f.skip + at, first * V, p.k);
        UNROLL
        for (u32 u = 0; u < GEMV_TOGETHER; u++) {
          UNROLL
          for (u32 w = 0; w < 4; w++) x[u][w] = add_two(T{}, x[u][w], added[u][w]);
          if (f.sum && (first + u * GEMV_ITEMS) * V < p.k) store_unit(f.sum + at + u * GEMV_ITEMS * 16, x[u]);
        }
      }
      if (g.norm) wait_copies<0>();
      WidePlace place = WidePlace::of<T, Loads>(g, first);
      UNROLL
      for (u32 u = 0; u < GEMV_TOGETHER; u++) {
        u32 pack = first + u * GEMV_ITEMS;
        if (pack >= packs) break;
        if (pack * V >= p.k) x[u] = Unit{};
        place.plus(u * GEMV_ITEMS).put<T, Loads>(x[u], pack, g.norm, square);
      }
    }
  } else {
    // Each work item puts its packs and their scale there by elements, and goes on from that.
    fill_row_by_one<T>(p, g, from, 0, f.stores_sum);
#pragma unroll 1
    for (u32 pack = item_id(); pack < packs; pack += GEMV_ITEMS) {
      WidePlace place = WidePlace::of<T, Loads>(g, pack);
      T *scale = (T *)place.scale;
#pragma unroll 1
      for (u32 v = 0; g.norm && v < V; v++)
        scale[v] = narrow<T>(pack * V + v < p.k ? load_one<T>(g.scale, pack * V + v) : 0);
      place.put<T, Loads>(*place.low, pack, g.norm, square);
    }
  }
  if (g.norm) {
    square = sum_over_wave<1>(&square);
    if (item_id() % WAVE == 0) ((f32 *)&squares)[item_id() / WAVE] = square;
  }
  gemv_barrier();
  if (!g.norm) return 1;
  Unit parts = squares;
  return one_over_norm((bits<f32>(parts[0]) + bits<f32>(parts[1])) + (bits<f32>(parts[2]) + bits<f32>(parts[3])), p.k, g.epsilon);
}
