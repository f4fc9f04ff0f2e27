// Linear-time sequence models: LinearAttention, and the causal convolution over time before it.
//
// Access: the state of a head is cut by columns of values, which do not depend on each other. A workgroup has 16 of them in
// registers from the first position to the last: neighbours read neighbouring columns, and rows of the state are spread over
// sixteen teams of 16 work items. Keys, queries and decays of a position are read once a workgroup, into its memory. States of
// more than 256 rows stay in global memory instead, where each work item reads and writes its own elements.
// Bound: one position by reading and writing the state; many by three barriers a position, since each needs the state that the
// one before left.
#include "rukh/element.h"
#include "rukh/math.h"
#include "rukh/move.h"

struct LinearParams {
  // [batch][steps][heads][size]; the states [batch][kv_heads][d_k][d_v]. 0 for what is not there.
  u64 q, k, v, past, decay, beta, y, present;
  // Of states that do not fit into registers: f32, like `present`.
  u64 state;
  // Workgroups of a head.
  Divider tiles;
  // Heads of values; of a batch.
  Divider heads;
  u32 query_heads, key_heads, out_heads;
  u32 steps, d_k, d_v;
  u32 type, state_type;
  // Columns of a position in decay and beta.
  u32 decay_columns, beta_columns;
  f32 scale;
  u32 unused;
};
static_assert(sizeof(LinearParams) == 144, "the mirror in providers/hip/attention/recurrent.rs");

constexpr u32 COLUMNS = 16, TEAMS = GROUP / COLUMNS;
// Rows of the state that a work item has in registers, and that all teams have.
constexpr u32 ROWS = 16, HELD_ROWS = ROWS * TEAMS;

// As load_number and store_number (rows.h), which are a tenth more machine code here.
DEVICE f32 load(u64 from, u32 type, u64 at) {
  if (type == F32) return ((const GLOBAL f32 *)from)[at];
  u16 raw = ((const GLOBAL u16 *)from)[at];
  return type == F16 ? (f32)bits<f16>(raw) : from_bf16(raw);
}
DEVICE void store(u64 to, u32 type, u64 at, f32 x) {
  if (type == F32) ((GLOBAL f32 *)to)[at] = x;
  else ((GLOBAL u16 *)to)[at] = type == F16 ? bits<u16>((f16)x) : to_bf16(x);
}

// What a workgroup shares.
struct LinearShared {
  f32 key[HELD_ROWS], query[HELD_ROWS], factor[HELD_ROWS];
  // Sums of the teams: two, so that one may be written while the other is read.
  f32 sums[2][TEAMS][COLUMNS];
};

template <bool HELD> struct Linear {
  const LinearParams &p;
  LinearShared *shared;
  u32 head, task, column, team;
  bool live;
  u32 turn;
  f32 rows[HELD ? ROWS : 1];

  // Calls `body` with each of the work item's rows and its element of the state, which may change.
  template <class Body> METHOD void each(Body body) {
    if constexpr (HELD) {
      UNROLL
      for (u32 n = 0; n < ROWS; n++) {
        u32 i = team + n * TEAMS;
        if (i < p.d_k) body(i, rows[n]);
      }
    } else if (live) {
      GLOBAL f32 *state = (GLOBAL f32 *)p.state + (u64)task * p.d_k * p.d_v + column;
      for (u32 i = team; i < p.d_k; i += TEAMS) {
        f32 x = state[(u64)i * p.d_v];
        body(i, x);
        state[(u64)i * p.d_v] = x;
      }
    }
  }

  // Of a position's row of a head; from the workgroup's memory where it was brought there.
  METHOD f32 one(u64 from, const f32 *held, u64 row, u32 i) const {
    return HELD ? held[i] : load(from, p.type, (row * p.d_k + i));
  }

  METHOD void hold(f32 *to, u64 from, u64 row) const {
    if constexpr (HELD)
      for (u32 i = item_id(); i < p.d_k; i += GROUP) to[i] = load(from, p.type, (row * p.d_k + i));
  }

  // By what a row of the state decays.
  METHOD f32 factor(u64 step, u32 i) const {
    bool own = p.decay_columns != p.heads.divisor;
    u64 at = step * p.decay_columns + (own ? head * p.d_k + i : head);
    return exp_(load(p.decay, p.type, at));
  }

  // The sum of what the teams have of each column.
  METHOD f32 join(f32 x) {
    f32(*sums)[COLUMNS] = shared->sums[turn];
    turn ^= 1;
    sums[team][item_id() % COLUMNS] = x;
    barrier();
    f32 sum = 0;
    UNROLL
    for (u32 t = 0; t < TEAMS; t++) sum += sums[t][item_id() % COLUMNS];
    return sum;
  }

  METHOD void run() {
    u32 tile = group_id();
    task = divide(tile, p.tiles);
    tile -= task * p.tiles.divisor;
    u32 batch = divide(task, p.heads);
    head = task - batch * p.heads.divisor;
    column = tile * COLUMNS + item_id() % COLUMNS, team = item_id() / COLUMNS;
    live = column < p.d_v, turn = 0;
    u64 first = (u64)task * p.d_k * p.d_v + column;
    each([&](u32 i, f32 &x) {
      x = p.past && live ? load(p.past, p.state_type, (first + (u64)i * p.d_v)) : 0;
    });
    u32 key_head = head * p.key_heads / p.heads.divisor;
    u32 begin = head * p.out_heads / p.heads.divisor, end = (head + 1) * p.out_heads / p.heads.divisor;
    for (u32 t = 0; t < p.steps; t++) {
      u64 step = (u64)batch * p.steps + t;
      u64 key_row = step * p.key_heads + key_head;
      // The position before may still be read.
      barrier();
      hold(shared->key, p.k, key_row);
      if (HELD && p.decay)
        for (u32 i = item_id(); i < p.d_k; i += GROUP) shared->factor[i] = factor(step, i);
      barrier();
      f32 value = live ? load(p.v, p.type, ((step * p.heads.divisor + head) * p.d_v + column)) : 0;
      if (p.decay || p.beta) {
        f32 held = 0;
        each([&](u32 i, f32 &x) {
          if (p.decay) x *= HELD ? shared->factor[i] : factor(step, i);
          if (p.beta) held = fma_(one(p.k, shared->key, key_row, i), x, held);
        });
        if (p.beta) {
          held = join(held);
          u64 at = step * p.beta_columns + (p.beta_columns == 1 ? 0 : head);
          value = load(p.beta, p.type, at) * (value - held);
        }
      }
      each([&](u32 i, f32 &x) { x = fma_(one(p.k, shared->key, key_row, i), value, x); });
      for (u32 out = begin; p.y && out < end; out++) {
        u64 query_row = step * p.query_heads + out * p.query_heads / p.out_heads;
        if (HELD) barrier();
        hold(shared->query, p.q, query_row);
        if (HELD) barrier();
        f32 sum = 0;
        each([&](u32 i, f32 &x) { sum = fma_(one(p.q, shared->query, query_row, i) * p.scale, x, sum); });
        sum = join(sum);
        if (live && team == 0) store(p.y, p.type, ((step * p.out_heads + out) * p.d_v + column), sum);
      }
    }
    if (!p.present || !live) return;
    each([&](u32 i, f32 &x) { store(p.present, p.state_type, (first + (u64)i * p.d_v), x); });
  }
};

KERNEL(GROUP) linear_held(LinearParams p) {
  SHARED static LinearShared shared;
  Linear<true> linear{p, &shared, 0, 0, 0, 0, false, 0, {}};
  linear.run();
}
KERNEL(GROUP) linear_wide(LinearParams p) {
  SHARED static LinearShared shared;
  Linear<false> linear{p, &shared, 0, 0, 0, 0, false, 0, {}};
  linear.run();
}

// A depthwise convolution over past and present positions.
//
// Access: a work item has a position of a channel, its neighbours those beside it in memory; each input is read as often as
// the kernel has elements, from the caches but for the first time. Bound: the bytes of input, result and states.
struct CausalParams {
  u64 x, weight, bias, past, y, present;
  // Positions of all channels: as many as the longer of input and state has.
  u64 count;
  // Positions that are counted, and channels.
  Divider positions, channels;
  u32 length, state, kernel, dilation;
  u32 type;
  // Whether channels lie behind positions.
  u32 last;
  u32 silu;
  u32 unused;
};
static_assert(sizeof(CausalParams) == 112, "the mirror in providers/hip/attention/recurrent.rs");

KERNEL(GROUP) causal_conv(CausalParams p) {
  u64 item = (u64)group_id() * GROUP + item_id();
  if (item >= p.count) return;
  u64 inner = divide_wide(item, p.last ? p.channels : p.positions);
  u32 first = (u32)(item - inner * (p.last ? p.channels.divisor : p.positions.divisor));
  u64 batch = divide_wide(inner, p.last ? p.positions : p.channels);
  u32 second = (u32)(inner - batch * (p.last ? p.positions.divisor : p.channels.divisor));
  u32 channel = p.last ? first : second, at = p.last ? second : first;
  // Where a position of so many lies.
  auto place = [&](u32 of, u32 i) {
    return (u64)(p.last ? (batch * of + i) * p.channels.divisor + channel : (batch * p.channels.divisor + channel) * of + i);
  };
  // Positions of the past, and of the input behind them.
  auto seen = [&](u32 i) {
    if (i >= p.state) return load(p.x, p.type, place(p.length, i - p.state));
    return p.past ? load(p.past, p.type, place(p.state, i)) : 0;
  };
  if (p.y && at < p.length) {
    f32 sum = p.bias ? load(p.bias, p.type, channel) : 0;
    for (u32 i = 0; i < p.kernel; i++)
      sum = fma_(load(p.weight, p.type, channel * p.kernel + i), seen(at + i * p.dilation), sum);
    if (p.silu) sum = sum / (1 + exp_(-sum));
    store(p.y, p.type, place(p.length, at), sum);
  }
  if (p.present && at < p.state) store(p.present, p.type, place(p.state, at), seen(p.length + at));
}
