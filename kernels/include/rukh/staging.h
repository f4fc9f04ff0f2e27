// An operand's way to workgroup memory on AMD: through registers, so that the next step's part of it is on its way while
// this step multiplies.
//
// In workgroup memory k is contiguous within a line. Lines are a chunk longer than BK, and each eight of them some more,
// so that no bank is met twice: by the loads of fragments, whose lanes the memory serves in eights (on CDNA lanes 0 to 3
// with 20 to 23, and so on), by whole chunks that are put down, and by pairs of k.
// Access: 16 bytes a load, along k or along the lines.
#pragma once
#include "matrix.h"
#include "operand.h"

typedef u32 u32x4 __attribute__((ext_vector_type(4)));

template <class T> DEVICE Chunk pack_chunk(const T *x) {
  Chunk c;
  for (int i = 0; i < 4; i++) c.word[i] = bits<u16>(x[2 * i]) | (u32)bits<u16>(x[2 * i + 1]) << 16;
  return c;
}

// Numbers between lines, what eight of them have more, and what is in front of a line, for lines of BK numbers.
template <int BK> constexpr int staged_line = BK + 8;
#if defined(HAS_MFMA)
constexpr u32 STAGED_MORE = 32;
#else
constexpr u32 STAGED_MORE = 8;
#endif
template <int BK> DEVICE constexpr u32 staged_at(u32 line) { return line * staged_line<BK> + line / 8 * STAGED_MORE; }

// Which of LINES lines, and which of its CHUNKS chunks, is a work item's `unit`: eight neighbours have eight lines.
template <u32 CHUNKS> DEVICE u32 line_of(u32 unit) { return unit % 8 + unit / (8 * CHUNKS) * 8; }
template <u32 CHUNKS> DEVICE u32 chunk_of(u32 unit) { return unit / 8 % CHUNKS; }

// A work item's part of LINES lines: whole aligned chunks along k, or two neighbouring k of eight lines. What lies
// outside comes as zeros; nothing branches, so that all loads are on their way at once.
template <class T, int LINES, int BK, bool BY_K> struct WholeShare {
  static constexpr u32 CHUNKS = BK / 8, BLOCKS = LINES / 8;
  static constexpr u32 UNITS = BY_K ? LINES * CHUNKS : BLOCKS * (BK / 2), COUNT = (UNITS + GROUP - 1) / GROUP;
  Chunk x[COUNT][BY_K ? 1 : 2];

  DEVICE Chunk load(const T *from, bool inside) {
    u32x4 words = *(const GLOBAL u32x4 *)(u64)from;
    return bits<Chunk>(inside ? words : (u32x4)0);
  }
  // Neighbouring items have neighbouring pairs of k of one block of eight lines, so many of them, then other blocks.
  static constexpr u32 PAIRS = STAGED_MORE / 2 < BK / 2 ? STAGED_MORE / 2 : BK / 2;
  DEVICE u32 block_of(u32 unit) { return unit / PAIRS % BLOCKS; }
  DEVICE u32 pair_of(u32 unit) { return (unit % PAIRS + unit / (PAIRS * BLOCKS) * PAIRS) * 2; }

  template <class From> METHOD void fetch(From &from, u32 line, u32 k) {
    if constexpr (BY_K) from.begin_step(k + chunk_of<CHUNKS>(item_id()) * 8);
#pragma unroll
    for (u32 c = 0; c < COUNT; c++) {
      u32 unit = item_id() + c * GROUP;
      if (UNITS % GROUP && unit >= UNITS) continue;
      if constexpr (BY_K) {
        u32 valid;
        const T *at = from.chunk(c, line + line_of<CHUNKS>(unit), k + chunk_of<CHUNKS>(unit) * 8, valid);
        x[c][0] = load(at, valid);
      } else {
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
          bool inside;
          const T *at = from.line_chunk(line + block_of(unit) * 8, k + pair_of(unit) + i, inside);
          x[c][i] = load(at, inside);
        }
      }
    }
  }

  METHOD void put(T *to) const {
#pragma unroll
    for (u32 c = 0; c < COUNT; c++) {
      u32 unit = item_id() + c * GROUP;
      if (UNITS % GROUP && unit >= UNITS) continue;
      if constexpr (BY_K) {
        *(Chunk *)(to + staged_at<BK>(line_of<CHUNKS>(unit)) + chunk_of<CHUNKS>(unit) * 8) = x[c][0];
      } else {
        T *first = to + staged_at<BK>(block_of(unit) * 8) + pair_of(unit);
#pragma unroll
        for (u32 v = 0; v < 8; v++) {
          u32 low = x[c][0].word[v / 2], high = x[c][1].word[v / 2];
          *(u32 *)(first + v * staged_line<BK>) = v % 2 ? low >> 16 | (high & 0xffff0000) : (low & 0xffff) | high << 16;
        }
      }
    }
  }
};

// The same for any operand, element by element where it must be.
template <class T, int LINES, int BK> struct AnyShare {
  static constexpr u32 CHUNKS = BK / 8, UNITS = LINES * CHUNKS, PAIRS = LINES / 8 * (BK / 2);
  static constexpr u32 COUNT = (UNITS + GROUP - 1) / GROUP;
  static_assert((PAIRS + GROUP - 1) / GROUP * 2 <= 2 * COUNT, "both ways take the same registers");
  T x[COUNT][2][8];
  bool by_k;

  template <class From> METHOD void fetch(From &from, u32 line, u32 k) {
    by_k = from.prefers_k();
    if (by_k) from.begin_step(k + chunk_of<CHUNKS>(item_id()) * 8);
#pragma unroll
    for (u32 c = 0; c < COUNT; c++) {
      u32 unit = item_id() + c * GROUP;
      if (by_k) {
        u32 at = line + line_of<CHUNKS>(unit), own = k + chunk_of<CHUNKS>(unit) * 8;
        if (unit < UNITS) from.template pack_along_k<T, 8>(x[c][0], c, at, own);
      } else if (unit < PAIRS) {
        u32 at = line + unit % (LINES / 8) * 8, pair = k + unit / (LINES / 8) * 2;
        from.template along_lines<T, 8>(x[c][0], at, pair);
        from.template along_lines<T, 8>(x[c][1], at, pair + 1);
      }
    }
  }

  METHOD void put(T *to) const {
#pragma unroll
    for (u32 c = 0; c < COUNT; c++) {
      u32 unit = item_id() + c * GROUP;
      if (by_k) {
        T *own = to + staged_at<BK>(line_of<CHUNKS>(unit)) + chunk_of<CHUNKS>(unit) * 8;
        if (unit < UNITS) *(Chunk *)own = pack_chunk(x[c][0]);
      } else if (unit < PAIRS) {
        T *first = to + staged_at<BK>(unit % (LINES / 8) * 8) + unit / (LINES / 8) * 2;
        for (u32 v = 0; v < 8; v++)
          *(u32 *)(first + v * staged_line<BK>) = bits<u16>(x[c][0][v]) | (u32)bits<u16>(x[c][1][v]) << 16;
      }
    }
  }
};
