// What the kernels of attention of few queries along many keys share, as a decoder's: workgroups share the keys of a head,
// and the one that comes last puts their parts together (Flash-Decoding: Dao, Haziza, Massa and Sizov, 2023). Heads that
// share keys are rows of one workgroup, so that keys and values are read once.
//
// They may put a new key and value of each sample into the caches themselves, and rotate them and the queries: then a step
// of a decoder is one launch.
#pragma once
#include "arrive.h"
#include "flash.h"
#include "unit.h"

struct DecodeParams {
  FlashParams flash;
  // Parts of each head's rows: ROWS rows of SIZE sums, then their greatest scores and totals.
  u64 partial, arrived;
  // A new key and value of each sample and key head, which are put into the caches; 0 where these have them already.
  u64 fresh_k, fresh_v;
  // Of the rotation of queries and new keys: 0 for none; positions too, which then follow from the lengths.
  u64 cosines, sines, positions;
  // Index of each sample's last key, with new keys.
  u64 last;
  // Elements between samples and between key heads.
  i64 fresh_k_strides[2], fresh_v_strides[2];
  // Parts of the keys, and queries of a head.
  Divider splits, queries;
  u32 tiles;
  // Of cosines and sines.
  u32 half, cache_rows;
  u32 interleaved;
  // Whether the kernel just before writes none of the caches, lengths and positions, which so may be read while it runs.
  u32 early, unused;
};
static_assert(sizeof(DecodeParams) == 464, "the mirror in providers/hip/attention/decode.rs");

// Work items of a workgroup, unless a kernel says otherwise.
constexpr u32 DECODE_ITEMS = 128;
// Parts of the keys, at most.
constexpr u32 DECODE_PARTS = 64;

// What queries, results and rows of workgroup memory are: numbers of T, and COLUMNS of a head in their order.
template <class T, u32 COLUMNS> struct DecodeNumbers {
  typedef T Type;
  // The least and the most columns that a row of workgroup memory has.
  static constexpr u32 LEAST = COLUMNS, MOST = COLUMNS;
  METHOD f32 load(u64 address, u64 at) const { return load_one<T>(address, at); }
  METHOD void store(u64 address, u64 at, f32 x) const { ((T *)address)[at] = narrow<T>(x); }
  METHOD f32 rounded(f32 x) const { return widen(narrow<T>(x)); }
  METHOD u64 bytes(i64 numbers) const { return numbers * sizeof(T); }
  METHOD u32 columns() const { return COLUMNS; }
  METHOD u32 row_of(u32 at) const { return at / COLUMNS; }
  // The column that stands at a place of a row.
  METHOD u32 column_of(u32 place) const { return place; }
  // Where a wave's sum for a place of a row lies.
  METHOD u32 sum_at(u32 row, u32 place) const { return row * COLUMNS + place; }
  // What a column of queries is multiplied with, and a sum of values, as it becomes a result.
  METHOD f32 factor(u32) const { return 1; }
  METHOD f32 result(f32 x, u32) const { return x; }
};

// Element `i` of a row, to be rotated to a position. No branch, so that the loads of several elements are on their way
// together.
struct Rotated {
  f32 own, partner, cosine, sine;
  bool in, second;

  // `cosines`, `sines`: those of the position, 0 where nothing is rotated.
  template <class N>
  DEVICE Rotated load(const DecodeParams &p, const N &numbers, u64 row, u32 i, u64 cosines, u64 sines) {
    bool in = i < 2 * p.half, second = p.interleaved ? i % 2 : i >= p.half;
    u32 away = p.interleaved ? 1 : p.half, other = second ? i - away : i + away;
    u32 pair = p.interleaved ? i / 2 : second ? other : i, at = in ? pair : 0;
    return {numbers.load(row, i), numbers.load(row, in ? other : i), numbers.load(cosines ? cosines : row, at),
            numbers.load(cosines ? sines : row, at), in, second};
  }
  template <class N> METHOD f32 number(const N &numbers) const {
    u32 turned = bits<u32>(numbers.rounded(cosine * own + (second ? sine : -sine) * partner));
    return in ? bits<f32>(opaque(turned)) : own;
  }
};

// The sum of a row's weighted values on its way along the keys.
template <u32 PACK> struct DecodeSum {
  f32 most, total, out[PACK];

  METHOD void begin() {
    most = -infinity(0.f), total = 0;
    UNROLL
    for (u32 i = 0; i < PACK; i++) out[i] = 0;
  }
  // Brings what was added to a greater score.
  METHOD f32 rise(f32 x) {
    x = __builtin_fmaxf(x, most);
    // Where nothing is seen yet there is nothing to bring.
    f32 base = x == -infinity(0.f) ? 0 : x, factor = exp_near(most - base);
    most = x, total *= factor;
    UNROLL
    for (u32 i = 0; i < PACK; i++) out[i] *= factor;
    return base;
  }
  // Adds what the lane that differs in `mask` has; both rise to the same score, each by its own sums.
  METHOD void join(u32 mask) {
    rise(lane_xor(most, mask));
    total += lane_xor(total, mask);
    UNROLL
    for (u32 i = 0; i < PACK; i++) out[i] += lane_xor(out[i], mask);
  }
};

// The rows that a workgroup computes, and its part of the keys that any of them sees.
template <class N, u32 ROWS, u32 ITEMS = DECODE_ITEMS> struct DecodePart {
  const DecodeParams &p;
  N numbers;
  u32 tile, split, kv_head, batch, first_row, rows;
  // Keys of the sample, and the position of its query.
  i64 length, position;
  // Keys that any row sees, keys of a part, and this part's first and behind its last one.
  u32 seen, chunk, own, own_end;
  // The index of the new key, and whether this part puts it into the caches.
  u32 newest;
  bool fresh;

  DEVICE DecodePart of(const DecodeParams &p, N numbers) {
    const FlashParams &f = p.flash;
    const SoftmaxParams &m = f.softmax;
    u32 tile = divide(group_id(), p.splits), first_row = tile * ROWS, rows = f.group * m.all_queries - first_row;
    u32 batch = group_id_z();
    i64 length = p.last ? (i64)load_settled<i32>(p.last, batch) + 1 : length_of(m, batch), position = 0;
    if (p.last && (length < 1 || length > (i64)m.keys)) {
      report(m.errors, ERROR_INDEX);
      length = length < 1 ? 1 : m.keys;
    }
    if (p.cosines) {
      position = p.positions ? load_settled<i64>(p.positions, batch) : length - 1;
      if (position < 0 || position >= (i64)p.cache_rows) {
        report(m.errors, ERROR_INDEX);
        position = 0;
      }
    }
    u32 split = group_id() - tile * p.splits.divisor;
    return {p, numbers, tile, split, group_id_y(), batch, first_row, rows < ROWS ? rows : ROWS, length, position, 0, 0, 0, 0, (u32)length - 1, false};
  }

  METHOD u32 head_of(u32 r) const { return kv_head * p.flash.group + divide(first_row + r, p.queries); }
  METHOD u32 query_of(u32 r) const { return first_row + r - divide(first_row + r, p.queries) * p.queries.divisor; }

  // The keys that a row sees: from the first to before the last. Rows that are not there see what row 0 does.
  METHOD void keys_of(u32 r, u32 &from, u32 &to) const {
    const SoftmaxParams &m = p.flash.softmax;
    Visible v = visible_of(m, length, query_of(r < rows ? r : 0));
    from = v.first < (i64)m.keys ? (u32)v.first : m.keys, to = v.last > 0 ? (u32)v.last : 0;
    if (m.mask && m.mask_keys < to) to = m.mask_keys;
  }

  // Takes a part of the keys that rows see, in steps of as many as are loaded at once: of few keys there are fewer parts.
  // Parts that come together in workgroup memory, `near` of them, are all that there are while each has few steps: on an H200 that
  // is 1.3 µs faster along 1500 keys than more parts, which device memory joins, and 1.7 µs slower along 4000. False where
  // nothing is left for this workgroup, which then waits for no kernel: the first part does, and with it who waits for this one.
  METHOD bool take(u32 begin, u32 end, u32 step, u32 near = 0) {
    constexpr u32 FEW_STEPS = 3;
    seen = end > begin ? end - begin : 0;
    chunk = near && seen <= near * FEW_STEPS * step ? (seen + near - 1) / near : divide(seen + p.splits.divisor - 1, p.splits);
    chunk = (chunk + step - 1) / step * step;
    own = begin + split * chunk, own_end = own + chunk < end ? own + chunk : end;
    // The last part has the last key.
    fresh = p.fresh_k && own + chunk >= end;
    return !split || split * chunk < seen;
  }

  // The keys that each row sees, and a part of what any of them does; see `take`.
  METHOD bool take_rows(u32 (&from)[ROWS], u32 (&to)[ROWS], u32 step) {
    u32 begin = p.flash.softmax.keys, end = 0;
    UNROLL
    for (u32 r = 0; r < ROWS; r++) {
      keys_of(r, from[r], to[r]);
      begin = from[r] < begin ? from[r] : begin, end = to[r] > end ? to[r] : end;
    }
    return take(begin, end, step);
  }

  typedef typename N::Type T;
  METHOD T *keys() const {
    const FlashParams &f = p.flash;
    return (T *)f.k + batch * f.k_strides[0] + kv_head * f.k_strides[1];
  }
  METHOD T *values() const {
    const FlashParams &f = p.flash;
    return (T *)f.v + batch * f.v_strides[0] + kv_head * f.v_strides[1];
  }

  // Columns of a work item, of a row that all of them share.
  static constexpr u32 SHARES = (N::MOST + ITEMS - 1) / ITEMS;

  // Brings the rows of queries to workgroup memory, rotated: `put` stores what stands at a place of a row. Where this part
  // has the new key and value, `keep` takes them: of each what stands at the places `item_id() + n * ITEMS`.
  template <class Put, class Keep> METHOD void bring(Put put, Keep keep) const {
    constexpr u32 ROUNDS = (ROWS * N::MOST + ITEMS - 1) / ITEMS;
    constexpr u32 TOGETHER = ROUNDS < 4 ? ROUNDS : 4;
    const FlashParams &f = p.flash;
    u64 key = p.fresh_k + numbers.bytes(batch * p.fresh_k_strides[0] + kv_head * p.fresh_k_strides[1]);
    u64 value = p.fresh_v + numbers.bytes(batch * p.fresh_v_strides[0] + kv_head * p.fresh_v_strides[1]);
    u64 angles = numbers.bytes(position * p.half), cosines = p.cosines ? p.cosines + angles : 0, sines = p.sines + angles;
    u32 all = rows * numbers.columns();
    // All loads are on their way before the first number is used. Places outside read the row's first number.
    f32 v[SHARES];
    Rotated new_key[SHARES];
    if (fresh) {
      UNROLL
      for (u32 n = 0; n < SHARES; n++) {
        u32 i = numbers.column_of(item_id() + n * ITEMS);
        new_key[n] = Rotated::load(p, numbers, key, i < f.size ? i : 0, cosines, sines);
        v[n] = numbers.load(value, i < f.v_size ? i : 0);
      }
    }
#pragma unroll 1
    for (u32 first = item_id(); first < all; first += TOGETHER * ITEMS) {
      Rotated q[TOGETHER];
      f32 factors[TOGETHER];
      UNROLL
      for (u32 n = 0; n < TOGETHER; n++) {
        u32 at = first + n * ITEMS, row = numbers.row_of(at), r = row < rows ? row : 0;
        u32 i = numbers.column_of(at - row * numbers.columns()), in = i < f.size ? i : 0;
        i64 from = batch * f.q_strides[0] + head_of(r) * f.q_strides[1] + query_of(r) * f.q_strides[2];
        q[n] = Rotated::load(p, numbers, f.q + numbers.bytes(from), in, cosines, sines);
        factors[n] = numbers.factor(in);
      }
      UNROLL
      for (u32 n = 0; n < TOGETHER; n++) {
        u32 at = first + n * ITEMS, row = numbers.row_of(at), place = at - row * numbers.columns();
        f32 x = q[n].number(numbers) * factors[n];
        if (at < all) put(row, place, numbers.column_of(place) < f.size ? x : 0);
      }
    }
    if (!fresh) return;
    f32 k[SHARES];
    UNROLL
    for (u32 n = 0; n < SHARES; n++) k[n] = new_key[n].number(numbers);
    keep(k, v);
  }

  // The same, for caches of T: the new key and value go into them, and to `new_key` and `new_value`. Workgroups of several
  // tiles write the same into the caches.
  template <class Put> METHOD void bring_rows(T *new_key, T *new_value, Put put) const {
    const FlashParams &f = p.flash;
    bring(put, [&](const f32 (&k)[SHARES], const f32 (&v)[SHARES]) __attribute__((always_inline)) {
      UNROLL
      for (u32 n = 0; n < SHARES; n++) {
        u32 i = item_id() + n * ITEMS;
        if (i >= N::MOST) continue;
        new_key[i] = narrow<T>(i < f.size ? k[n] : 0), new_value[i] = narrow<T>(i < f.v_size ? v[n] : 0);
        if (i < f.size) keys()[newest * f.k_strides[2] + i] = new_key[i];
        if (i < f.v_size) values()[newest * f.v_strides[2] + i] = new_value[i];
      }
    });
  }

  // Stores what stands at a place of a row.
  METHOD void store(u32 r, u32 place, DecodeSum<1> sum) const {
    const FlashParams &f = p.flash;
    const SoftmaxParams &m = f.softmax;
    u32 i = numbers.column_of(place);
    if (i >= f.v_size) return;
    u32 head = head_of(r);
    if (m.sinks || m.smooth) {
      f32 sink = m.sinks ? numbers.load(m.sinks, head) : 0, base = sum.rise(sink);
      sum.total += exp_near(sink - base);
    }
    f32 y = sum.total != 0 ? divide_near(sum.out[0], sum.total) : 0;
    i64 to = batch * f.y_strides[0] + head * f.y_strides[1] + query_of(r) * f.y_strides[2];
    numbers.store(f.y, to + i, numbers.result(y, place));
  }

  // Floats of a part.
  METHOD u64 part_size() const { return ROWS * (numbers.columns() + 2); }

  // Parts that have keys; the first has some work in any case.
  METHOD u32 parts_with_keys() const { return seen > chunk ? (seen + chunk - 1) / chunk : 1; }
  // Of the tile among those of all heads.
  METHOD u64 number() const { return ((u64)batch * p.flash.kv_heads + kv_head) * p.tiles + tile; }
  METHOD f32 *parts() const { return (f32 *)p.partial + number() * p.splits.divisor * part_size(); }

  // The sum of what the workgroup's waves have of a place.
  // `sums`: of each wave those of ROWS rows in workgroup memory, in the order of `sum_at`; `most_of`, `total_of`: [wave][row].
  template <u32 WAVES>
  METHOD DecodeSum<1> sum_of_waves(const f32 *sums, const f32 (*most_of)[ROWS], const f32 (*total_of)[ROWS], u32 r, u32 i) const {
    f32 most = -infinity(0.f);
    DecodeSum<1> sum = {most, 0, {0}};
    UNROLL
    for (u32 w = 0; w < WAVES; w++) most = __builtin_fmaxf(most, most_of[w][r]);
    f32 base = sum.rise(most);
    UNROLL
    for (u32 w = 0; w < WAVES; w++) {
      f32 factor = exp_near(most_of[w][r] - base);
      sum.total += factor * total_of[w][r], sum.out[0] += factor * sums[w * ROWS * numbers.columns() + numbers.sum_at(r, i)];
    }
    return sum;
  }

  // Stores the result of a place, or where there are several such sums, this one of them in memory, to be joined.
  METHOD void give(u32 r, u32 i, DecodeSum<1> sum, u32 own_sum, u32 all) const {
    u32 columns = numbers.columns();
    if (all == 1) {
      store(r, i, sum);
      return;
    }
    f32 *part = parts() + own_sum * part_size();
    part[r * columns + i] = sum.out[0];
    if (i == 0) part[ROWS * columns + r * 2] = sum.most, part[ROWS * columns + r * 2 + 1] = sum.total;
  }
  // Joins what was given, in the workgroup that comes last.
  template <u32 WAVES> METHOD void join_given(f32 *memory, u32 all) const {
    static_assert(WAVES * N::LEAST >= 2 * DECODE_PARTS, "workgroup memory has room for what parts add");
    if (all > 1 && arrives_last((u32 *)p.arrived + number(), all)) join(memory, parts(), all);
  }

  // Puts the sums of the workgroup's waves together, and those of all parts; see `sum_of_waves`.
  template <u32 WAVES> METHOD void finish(f32 *sums, const f32 (*most_of)[ROWS], const f32 (*total_of)[ROWS]) const {
    u32 columns = numbers.columns(), all = parts_with_keys();
    for (u32 at = item_id(); at < rows * columns; at += ITEMS) {
      u32 r = numbers.row_of(at), i = at - r * columns;
      give(r, i, sum_of_waves<WAVES>(sums, most_of, total_of, r, i), split, all);
    }
    join_given<WAVES>(sums, all);
  }

  // The sums of all parts. What each part adds to a row is read once, by a few work items, while the others' loads are on
  // their way: elements of TOGETHER parts.
  METHOD void join(f32 *memory, const f32 *parts, u32 splits) const {
    constexpr u32 LEAST = ROWS * N::LEAST;
    constexpr u32 TOGETHER = 16, E = LEAST >= 4 * ITEMS ? 4 : LEAST >= 2 * ITEMS ? 2 : 1;
    typedef f32 Elements __attribute__((ext_vector_type(E)));
    u32 columns = numbers.columns();
    f32 *most_of = memory, *total_of = memory + DECODE_PARTS * ROWS;
    Elements x[TOGETHER];
    auto load = [&](u32 at, u32 s) __attribute__((always_inline)) {
      UNROLL
      for (u32 u = 0; u < TOGETHER; u++) x[u] = *(const GLOBAL Elements *)(u64)(parts + (s + u < splits ? s + u : 0) * part_size() + at);
    };
    u32 first = item_id() * E;
    if (first < rows * columns) load(first, 0);
    for (u32 i = item_id(); i < splits * ROWS; i += ITEMS) {
      const f32 *of = parts + i / ROWS * part_size() + ROWS * columns + i % ROWS * 2;
      most_of[i] = of[0], total_of[i] = of[1];
    }
    barrier();
#pragma unroll 1
    for (u32 at = first; at < rows * columns; at += ITEMS * E) {
      if (at != first) load(at, 0);
      u32 r = numbers.row_of(at);
      DecodeSum<E> sum;
      sum.begin();
      f32 most = -infinity(0.f);
      for (u32 s = 0; s < splits; s++) most = __builtin_fmaxf(most, most_of[s * ROWS + r]);
      f32 base = sum.rise(most);
#pragma unroll 1
      for (u32 s = 0; s < splits; s += TOGETHER) {
        if (s) load(at, s);
        UNROLL
        for (u32 u = 0; u < TOGETHER; u++) {
          if (s + u >= splits) continue;
          f32 factor = exp_near(most_of[(s + u) * ROWS + r] - base);
          sum.total += factor * total_of[(s + u) * ROWS + r];
          UNROLL
          for (u32 e = 0; e < E; e++) sum.out[e] += factor * x[u][e];
        }
      }
      UNROLL
      for (u32 e = 0; e < E; e++) store(r, at - r * columns + e, DecodeSum<1>{sum.most, sum.total, {sum.out[e]}});
    }
  }
};
