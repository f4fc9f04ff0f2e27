// Recurrent layers: one step of RNN, GRU or LSTM at a time, for all sequences and directions.
//
// The input's share of all steps is one product before (`gemm`). A step is a product of the state and the
// recurrence weight with the cell's functions behind it: a wave takes one hidden unit, reads its row of every
// gate's weight once for ROWS sequences, and finishes their gates. The state has two buffers, since other
// workgroups still read the old one. Access: weights in 16-byte packs along their rows. Bound: the bytes of
// the recurrence weight, from memory or the cache, and for small layers the launch of each step.
#include "rukh/operand.h"

enum Cell : u32 { SIMPLE = 0, GRU, GRU_RESET_PRODUCT, LSTM, LSTM_COUPLED };

// A function of a gate; `activate` follows the slope and bounds.
struct Function {
  f32 slope, low, high;
  u32 number;
  f32 a, b;
};

struct RnnParams {
  // Of C, [direction][row][gate · unit]: the input's products; a row is a step of a sequence.
  u64 sums;
  // Of T as the standard has them; bias and peephole may be 0.
  u64 weight, bias, peephole;
  // i32; 0 where all sequences are whole.
  u64 lengths, errors;
  // Of C, [direction][sequence][unit]: the state before and after the step, the cell's; for GRU the update
  // gate and the reset state.
  u64 before, after, cell, update, reset;
  // Of T; each may be 0.
  u64 first_h, first_c, y, last_h, last_c;
  u32 steps, batch, units, step;
  // Bits of the directions that run backward.
  u32 directions, backward, batch_first, kind;
  // 1 for the launch that finishes a GRU's candidate.
  u32 second;
  f32 clip;
  Function function[2][3];
};
static_assert(sizeof(RnnParams) == 312, "the mirror in providers/hip/rnn.rs");

constexpr u32 ROWS = 4, GATES = 4;

template <class T, class C> DEVICE C optional(u64 address, u64 at) {
  return address ? as<T, C>(((const T *)address)[at]) : (C)0;
}
template <class C> DEVICE C apply(const RnnParams &p, u32 direction, u32 i, C x) {
  const Function &f = p.function[direction][i];
  x = clamp_(x < 0 ? x * (C)f.slope : x, (C)f.low, (C)f.high);
  return activate(x, f.number, (C)f.a, (C)f.b);
}
DEVICE u64 state_row(const RnnParams &p, u32 direction, u32 sequence) {
  return p.batch_first ? (u64)sequence * p.directions + direction : (u64)direction * p.batch + sequence;
}

// The states before the first step; with no steps at all they are the last.
template <class T, class C> DEVICE void begin(const RnnParams &p) {
  u64 at = (u64)group_id() * GROUP + item_id();
  if (at >= (u64)p.directions * p.batch * p.units) return;
  u32 unit = at % p.units, sequence = at / p.units % p.batch, direction = at / p.units / p.batch;
  u64 row = state_row(p, direction, sequence) * p.units + unit;
  C h = optional<T, C>(p.first_h, row), c = optional<T, C>(p.first_c, row);
  ((C *)p.after)[at] = h;
  if (p.cell) ((C *)p.cell)[at] = c;
  if (p.steps == 0) {
    if (p.last_h) ((T *)p.last_h)[row] = round_to<T>(h);
    if (p.last_c) ((T *)p.last_c)[row] = round_to<T>(c);
  }
}

// sums[gate][row] += weight[gate] · state[row], this lane's share.
template <class T, class C, u32 V>
DEVICE void multiply(const T *weight, u64 gate_size, u32 gates, const C *state, u32 rows, u32 n, C (&sums)[GATES][ROWS]) {
  for (u32 k = item_id() % WAVE * V; k < n; k += WAVE * V) {
    C h[ROWS][V];
#pragma unroll
    for (u32 r = 0; r < ROWS; r++)
#pragma unroll
      for (u32 v = 0; v < V; v++) h[r][v] = r < rows ? state[r * n + k + v] : (C)0;
#pragma unroll
    for (u32 g = 0; g < GATES; g++) {
      if (g >= gates) continue;
      auto w = *(const Pack<T, V> *)(weight + g * gate_size + k);
#pragma unroll
      for (u32 v = 0; v < V; v++)
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) sums[g][r] = fma_(as<T, C>(w.at[v]), h[r][v], sums[g][r]);
    }
  }
}

template <class C> DEVICE C over_wave(C x) {
  for (u32 mask = WAVE / 2; mask > 0; mask /= 2) {
    if constexpr (sizeof(C) == 8) {
      u64 b = bits<u64>(x);
      x += bits<f64>((u64)lane_xor((u32)(b >> 32), mask) << 32 | lane_xor((u32)b, mask));
    } else {
      x += lane_xor(x, mask);
    }
  }
  return x;
}

// One unit of one sequence from its gates' recurrent products.
template <class T, class C> DEVICE void finish_unit(const RnnParams &p, u32 d, u32 sequence, u32 unit, const C *products) {
  u32 n = p.units, all = p.kind == SIMPLE ? 1 : p.kind < LSTM ? 3 : 4;
  u64 at = ((u64)d * p.batch + sequence) * n + unit, row = state_row(p, d, sequence) * n + unit;
  u32 length = p.steps;
  if (p.lengths) {
    i32 given = ((const i32 *)p.lengths)[sequence];
    if (given < 0 || given > (i32)p.steps) report(p.errors, ERROR_INDEX);
    length = given < 0 ? 0 : given < (i32)p.steps ? given : p.steps;
  }
  bool active = p.step < length, ends = p.step + 1 == p.steps;
  u32 time = active && p.backward >> d & 1 ? length - 1 - p.step : p.step;
  C h = ((const C *)p.before)[at], result = h;
  if (active) {
    u64 step_row = p.batch_first ? (u64)sequence * p.steps + time : (u64)time * p.batch + sequence;
    const C *sums = (const C *)p.sums + (((u64)d * p.steps * p.batch + step_row) * all) * n + unit;
    u64 bias = (u64)d * 2 * all * n + unit;
    C x[GATES] = {};
#pragma unroll
    for (u32 g = 0; g < GATES; g++) {
      if (g >= all) continue;
      bool apart = p.kind == GRU_RESET_PRODUCT && g == 2;
      x[g] = sums[g * n] + optional<T, C>(p.bias, bias + g * n);
      if (!apart) x[g] += optional<T, C>(p.bias, bias + (all + g) * n) + products[p.second ? 0 : g];
    }
    bool is_lstm = p.kind >= LSTM;
    C c = is_lstm ? ((C *)p.cell)[at] : 0, recurrent = 0;
    u64 peephole = (u64)d * 3 * n + unit;
    if (p.kind == GRU_RESET_PRODUCT) recurrent = products[2] + optional<T, C>(p.bias, bias + 5 * n);
    if (is_lstm) {
      // The standard's order is input, output, forget and cell; here the output gate comes last.
      C output = x[1];
      x[0] += optional<T, C>(p.peephole, peephole) * c;
      x[1] = x[2] + optional<T, C>(p.peephole, peephole + 2 * n) * c;
      x[2] = x[3];
      x[3] = output;
    }
    // Input or update gate, forget or reset gate, candidate, output gate, the cell's way out: each in its
    // turn, so that the functions are compiled once.
    C open = p.second ? ((const C *)p.update)[at] : 0, keep = 0, out = 0;
    u32 last = p.kind == SIMPLE ? 1 : is_lstm ? 5 : p.kind == GRU && !p.second ? 2 : 3;
#pragma unroll 1
    for (u32 turn = p.second ? 2 : 0; turn < last; turn++) {
      C v = turn == 0 ? x[0] : turn == 1 ? x[1] : turn == 2 ? x[2] + keep * recurrent : turn == 3 ? x[3] : c;
      if (turn < 4) v = clamp_(v, (C)-p.clip, (C)p.clip);
      v = apply(p, d, turn == 2 ? 1 : turn == 4 ? 2 : 0, v);
      if (turn == 0) open = v;
      if (turn == 1) keep = p.kind == LSTM_COUPLED ? 1 - open : v;
      if (turn == 2 && is_lstm) {
        c = keep * c + open * v;
        x[3] += optional<T, C>(p.peephole, peephole + n) * c;
      } else if (turn == 2) {
        result = (1 - open) * v + open * h;
      }
      if (turn == 3) out = v;
      if (turn == 4) result = out * v;
    }
    if (p.kind == SIMPLE) result = open;
    if (is_lstm) ((C *)p.cell)[at] = c;
    if (p.kind == GRU && !p.second) {
      ((C *)p.update)[at] = open;
      ((C *)p.reset)[at] = keep * h;
      return;
    }
  }
  if (p.kind == GRU && !p.second) {
    ((C *)p.update)[at] = 0;
    ((C *)p.reset)[at] = 0;
    return;
  }
  ((C *)p.after)[at] = result;
  if (p.y) {
    u64 y_row = p.batch_first ? ((u64)sequence * p.steps + time) * p.directions + d
                              : ((u64)time * p.directions + d) * p.batch + sequence;
    ((T *)p.y)[y_row * n + unit] = active ? round_to<T>(result) : T{};
  }
  if (ends && p.last_h) ((T *)p.last_h)[row] = round_to<T>(result);
  if (ends && p.last_c) ((T *)p.last_c)[row] = round_to<T>(((const C *)p.cell)[at]);
}

template <class T, class C> DEVICE void step(const RnnParams &p) {
  constexpr u32 V = 16 / sizeof(T);
  u32 n = p.units, unit = group_id() * (GROUP / WAVE) + item_id() / WAVE, lane = item_id() % WAVE;
  u32 first = group_id_y() * ROWS, d = group_id_z();
  if (unit >= n) return;
  u32 rows = p.batch - first < ROWS ? p.batch - first : ROWS;
  u32 all = p.kind == SIMPLE ? 1 : p.kind < LSTM ? 3 : 4;
  u32 first_gate = p.second ? 2 : 0, gates = p.second ? 1 : p.kind == GRU ? 2 : all;
  u64 gate_size = (u64)n * n;
  const T *weight = (const T *)p.weight + (d * all + first_gate) * gate_size + (u64)unit * n;
  const C *state = (const C *)(p.second ? p.reset : p.before) + ((u64)d * p.batch + first) * n;
  C sums[GATES][ROWS] = {};
  if (n % V == 0 && p.weight % 16 == 0) multiply<T, C, V>(weight, gate_size, gates, state, rows, n, sums);
  else multiply<T, C, 1>(weight, gate_size, gates, state, rows, n, sums);
  C own[GATES] = {};
#pragma unroll
  for (u32 g = 0; g < GATES; g++) {
    if (g >= gates) continue;
#pragma unroll
    for (u32 r = 0; r < ROWS; r++) {
      C sum = over_wave(sums[g][r]);
      own[g] = lane == r ? sum : own[g];
    }
  }
  if (lane < rows) finish_unit<T, C>(p, d, first + lane, unit, own);
}

KERNEL(GROUP) rnn_begin_f32(RnnParams p) { begin<f32, f32>(p); }
KERNEL(GROUP) rnn_begin_f16(RnnParams p) { begin<f16, f32>(p); }
KERNEL(GROUP) rnn_begin_bf16(RnnParams p) { begin<bf16, f32>(p); }
KERNEL(GROUP) rnn_begin_f64(RnnParams p) { begin<f64, f64>(p); }
KERNEL(GROUP) rnn_step_f32(RnnParams p) { step<f32, f32>(p); }
KERNEL(GROUP) rnn_step_f16(RnnParams p) { step<f16, f32>(p); }
KERNEL(GROUP) rnn_step_bf16(RnnParams p) { step<bf16, f32>(p); }
KERNEL(GROUP) rnn_step_f64(RnnParams p) { step<f64, f64>(p); }
