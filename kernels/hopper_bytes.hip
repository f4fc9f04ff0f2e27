// Products of signed bytes on Hopper (sm_90a), of operands that lie as lines along k: the tiles of tile_hopper.h, whose steps
// of 64 numbers are 128 bytes here. Waves that neither multiply nor copy find what lines add to the results of the next tiles.
//
// Access: operands by the copy engine; results by their work items, two or eight neighbours at a time. Bound: the matrix units.
#include "rukh/packed_bytes.h"
#include "rukh/team.h"
#include "rukh/tile_hopper.h"

extern SHARED Chunk dynamic_lds[];

template <bool> DEVICE void multiply(BytePair, i32 (&c)[64], u64 a, u64 b, u32 add) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {" NAMES_0 ", " NAMES_32
               "}, %64, %65, p;}"
               : SUMS_32_OF("+r", c, 0), SUMS_32_OF("+r", c, 32)
               : "l"(a), "l"(b), "r"(add));
}

struct alignas(64) HopperBytesParams {
  HopperParams hopper;
  PackedParams packed;
  u64 unused[7];
};
static_assert(sizeof(HopperBytesParams) == 1920, "the mirror in providers/hip/qlinear/hopper.rs");

// Sums stay where they are.
template <u32 ROWS64> struct BytesRows {
  typedef i32 Sums[ROWS64][64];
  static constexpr u32 BYTES = 0;
  METHOD void begin(u32, u32) {}
};

template <u32 GROUPS, u32 ROWS64, bool TURNS>
struct BytesOnHopper : HopperTile<BytePair, GROUPS, ROWS64, 128, TURNS, BytesRows<ROWS64>> {
  typedef HopperTile<BytePair, GROUPS, ROWS64, 128, TURNS, BytesRows<ROWS64>> Base;
  typedef typename Base::Place Place;
  static constexpr u32 BM = Base::BM, BN = 128, MULTIPLYING = Base::MULTIPLYING;
  // Work items that find lines, behind the two waves that copy; those that take part in what is told of a tile's lines.
  static constexpr u32 FINDING = WAVE_GROUP - 2 * WAVE, TOLD = WAVE_GROUP + FINDING, ITEMS = MULTIPLYING + WAVE_GROUP;
  // Barriers of the workgroup, two each: lines of a tile are there, and are no longer used. Groups' turns have the first ones.
  static constexpr u32 READY = 4, UNUSED = 6;

  // The lines of a workgroup's tile `n`, rows before columns.
  METHOD u32 lines_of(u32 n) const { return this->exchange() + n % 2 * (BM + BN) * 16; }

  DEVICE Place find(const HopperBytesParams &h, u32 id) {
    Place at = Base::find(h.hopper, id);
    find_matrix(h.packed.bytes.conv.product, at.tile, at.matrix, 2, 2, out_width(h.packed.bytes));
    return at;
  }

  // One side's scales are all the same: the other's lines have the product of both, over that of the result.
  template <bool IS_ROW> DEVICE Line find_scaled(const HopperBytesParams &h, u32 matrix, u32 at) {
    const BytesParams &q = h.packed.bytes;
    Line line = find_line<IS_ROW>(h.packed, matrix, matrix * (IS_ROW ? h.hopper.next_a : h.hopper.next_b), at);
    if (q.out_type == I32) return line;
    if ((q.a.scale_stride != 0) != IS_ROW) {
      line.scale = 1;
      return line;
    }
    f32 y_scale = q.y_scale ? load_number<f32>(q.y_scale, q.scale_type, 0) : 1;
    line.scale = line.scale * load_number<f32>((IS_ROW ? q.b : q.a).scales, q.scale_type, 0) / y_scale;
    return line;
  }

  METHOD void find_lines(const HopperBytesParams &h) const {
    u32 item = item_id() - (MULTIPLYING + 2 * WAVE), n = 0;
    for (u32 id = group_id(), count = this->all(h.hopper); id < count; id += groups(), n++) {
      u32 to = lines_of(n);
      Place at = Base::find(h.hopper, id);
      if (n >= 2) barrier_of(UNUSED + n % 2, TOLD);
#pragma unroll 1
      for (u32 i = item; i < BM + BN; i += FINDING)
        store_chunk(to + i * 16, bits<Chunk>(i < BM ? find_scaled<true>(h, at.matrix, at.tile.row + i)
                                                    : find_scaled<false>(h, at.matrix, at.tile.column + i - BM)));
      arrive_at(READY + n % 2, TOLD);
    }
  }

  METHOD void multiply_all(const HopperBytesParams &h) {
    u32 count = this->all(h.hopper), group = item_id() / WAVE_GROUP;
    // Groups that take turns have every other tile.
    u32 ours = TURNS ? GROUPS : 1, n = TURNS ? group : 0, id = group_id() + n * groups(), before = n * h.hopper.steps;
    for (; id < count; id += ours * groups(), n += ours) {
      Place at = find(h, id);
      typename Base::Sums sums;
#pragma unroll
      for (u32 i = 0; i < ROWS64 * 64; i++) sums[i / 64][i % 64] = 0;
      if (TURNS && n > 0) barrier_of(this->turn_of(group), MULTIPLYING);
      u32 then = TURNS && id + groups() < count ? this->turn_of(group + 1) : 0;
      typename Base::Turn turn{before % this->stages, before / this->stages};
      this->template multiply_steps<true>(at.steps, 0, then, turn, sums, [] {});
      before += at.steps * ours;
      barrier_of(READY + n % 2, TOLD);
      store(h.packed, at.tile, lines_of(n), sums);
      if (id + 2 * groups() < count) arrive_at(UNUSED + n % 2, TOLD);
    }
  }

  // A wave's 16 rows of 64 and 32 columns at a time, of which a lane has two rows and eight columns, so that the code stays
  // with the processor: the sums move down to it.
  METHOD void store(const PackedParams &p, const Tile &tile, u32 lines, typename Base::Sums &sums) const {
    const GemmParams &g = p.bytes.conv.product;
    u32 lane = lane_id();
    Scaling scaling = Scaling::of(p.bytes);
#pragma unroll 1
    for (u32 part = 0; part < ROWS64 * 4; part++) {
      u32 in_row = part / 4 * 64 + this->wave_row() + lane / 4, in_column = part % 4 * 32, column = tile.column + in_column;
      Line columns[8];
      UNROLL
      for (u32 i = 0; i < 8; i++)
        columns[i] = load_line(lines, BM + in_column + i / 2 * 8 + lane % 4 * 2 + i % 2);
      UNROLL
      for (u32 half = 0; half < 2; half++) {
        Line a = load_line(lines, in_row + half * 8);
        i32 from_a = a.sum - (i32)p.k * a.zero;
        u32 row = tile.row + in_row + half * 8, x[8];
        UNROLL
        for (u32 i = 0; i < 8; i++) {
          u32 own = column + i / 2 * 8 + lane % 4 * 2 + i % 2;
          Line b = columns[i];
          i32 sum = sums[0][i / 2 * 4 + half * 2 + i % 2] - b.zero * from_a - a.zero * b.sum + a.bias;
          x[i] = scaling.rounded(p.bytes, sum, a.scale * b.scale, own < g.n ? own : 0);
        }
        if (out_width(p.bytes) == 1) {
          u32 eight[4], bytes[2], in_lane = exchange_bytes(x, bytes) * 8;
          UNROLL
          for (u32 v = 0; v < 2; v++) {
            UNROLL
            for (u32 i = 0; i < 4; i++) eight[i] = bytes[v] >> i * 8 & 255;
            store_some(p.bytes, tile, row, column + in_lane + v * 4, 4, eight);
          }
        } else {
          UNROLL
          for (u32 i = 0; i < 4; i++) store_some(p.bytes, tile, row, column + i * 8 + lane % 4 * 2, 2, x + i * 2);
        }
      }
      UNROLL
      for (u32 i = 0; i + 16 < ROWS64 * 64; i++) sums[i / 64][i % 64] = sums[(i + 16) / 64][(i + 16) % 64];
    }
  }

  DEVICE Line load_line(u32 lines, u32 i) { return bits<Line>(load_chunk(lines + i * 16)); }

  // Of eight bytes of a lane, two of each eight neighbours: eight neighbours for each of four lanes. Tells which.
  DEVICE u32 exchange_bytes(const u32 (&x)[8], u32 (&bytes)[2]) {
    u32 lane = lane_id() % 4, two[2];
    UNROLL
    for (u32 i = 0; i < 2; i++) two[i] = x[i * 4] | x[i * 4 + 1] << 8 | x[i * 4 + 2] << 16 | x[i * 4 + 3] << 24;
    // With the lane two further, which has the other pair of eights; then with the neighbour, which has the other eight.
    bool second = lane >= 2, odd = lane % 2;
    u32 own = second ? two[1] : two[0], other = shuffle(second ? two[0] : two[1], 2);
    u32 first = second ? other : own, last = second ? own : other;
    u32 even_ones = (first & 0xffff) | last << 16, odd_ones = first >> 16 | (last & 0xffff0000);
    u32 mine = odd ? odd_ones : even_ones, got = shuffle(odd ? even_ones : odd_ones, 1);
    u32 left = odd ? got : mine, right = odd ? mine : got;
    bytes[0] = (left & 0xffff) | right << 16, bytes[1] = left >> 16 | (right & 0xffff0000);
    return lane;
  }

  DEVICE void store_some(const BytesParams &p, const Tile &tile, u32 row, u32 column, u32 most, const u32 *x) {
    const GemmParams &g = p.conv.product;
    if (row >= g.m || column >= g.n) return;
    u64 to = tile.out + (row * g.out_row + column) * out_width(p);
    if (most == 2 && column + 2 <= g.n && to % 8 == 0) *(u64 *)to = x[0] | (u64)x[1] << 32;
    else store_bytes(p, tile, row, column, g.n - column < most ? g.n - column : most, x);
  }
};

template <u32 GROUPS, u32 ROWS64, bool TURNS> DEVICE void bytes_by_staying(const HopperBytesParams &h, u64 parameters) {
  typedef BytesOnHopper<GROUPS, ROWS64, TURNS> Own;
  Own own;
  own.begin(h.hopper, (char *)dynamic_lds);
  if (item_id() < Own::MULTIPLYING) {
    if constexpr (GROUPS == 2) take_registers<232>();
    own.multiply_all(h);
    return;
  }
  if constexpr (GROUPS == 2) keep_registers<40>();
  const TensorMap *maps = (const TensorMap *)parameters;
  Own::bringing([&] { own.template bring<true>(h.hopper, maps); }, [&] { own.template bring<false>(h.hopper, maps); });
  if (item_id() >= Own::MULTIPLYING + 2 * WAVE) own.find_lines(h);
}

// Sizes of tiles are those of `providers/hip/qlinear/hopper.rs`.
#define BYTES_KERNEL(name, groups, rows64, turns, resident)                                                   \
  extern "C" __attribute__((global))                                                                           \
  __attribute__((launch_bounds(BytesOnHopper<groups, rows64, turns>::ITEMS, resident))) void name(HopperBytesParams p) { \
    u64 parameters;                                                                                            \
    FIND_PARAMETERS(name, parameters);                                                                         \
    bytes_by_staying<groups, rows64, turns>(p, parameters);                                                    \
  }
BYTES_KERNEL(bytes_hopper_128, 2, 2, true, 1)
BYTES_KERNEL(bytes_hopper_64, 1, 1, false, 2)
