// Each channel of an image, channels innermost (NHWC), times a gate, which a product makes of a few numbers of the
// image: what squeeze-and-excitation ends with.
//
// Access: a workgroup takes some pixels of at most 64 channels. Its packs of 16 bytes are on their way while four
// lanes a channel make the gates, each of every fourth pack of the channel's weights. Bound: the bytes of image and
// result; the weights come from the cache, once for each workgroup, which the host keeps few.
#include "rukh/activation.h"
#include "rukh/channels.h"

constexpr u32 SLAB = 64, LANES = GROUP / SLAB, PER_ITEM = 4;

struct ExciteParams {
  u64 x, y;
  // [images, inner], or without a weight the gates themselves, [images, channels].
  u64 hidden;
  // [channels, inner] and [channels]; 0: none.
  u64 weight, bias;
  u32 pixels, channels, inner;
  // Of the elements.
  u32 type;
  // Slabs beside one another, the packs of one, and chunks of pixels of an image.
  Divider slabs, packs, chunks;
  // Pixels of a chunk.
  u32 chunk;
  // What becomes of a gate, as products have it.
  f32 slope, low, high;
  u32 activation;
  f32 act_a, act_b;
};
static_assert(sizeof(ExciteParams) == 120, "the mirror in providers/hip/conv/excite.rs");

// The part of a gate that a lane makes.
template <class T, int V, bool WHOLE> DEVICE f32 part_of(const ExciteParams &p, u32 image, u32 channel) {
  const T *weight = (const T *)p.weight + (u64)channel * p.inner;
  const T *hidden = (const T *)p.hidden + (u64)image * p.inner;
  f32 sum = 0;
  for (u32 at = item_id() % LANES * V; at < p.inner; at += LANES * V) {
    f32 a[V], b[V];
    load_channels<T, V, WHOLE>(a, weight + at, p.inner - at);
    load_channels<T, V, WHOLE>(b, hidden + at, p.inner - at);
    UNROLL
    for (u32 v = 0; v < V; v++) sum = fma_(a[v], b[v], sum);
  }
  return sum;
}

template <class T, int V, bool WHOLE> DEVICE void excite(const ExciteParams &p) {
  SHARED static f32 gates[SLAB];
  u32 rest = divide(group_id(), p.slabs), image = divide(rest, p.chunks);
  u32 packs = p.packs.divisor, first = (group_id() - rest * p.slabs.divisor) * packs * V;
  u32 pixel = (rest - image * p.chunks.divisor) * p.chunk;
  u32 pixels = p.pixels - pixel < p.chunk ? p.pixels - pixel : p.chunk;
  u64 start = ((u64)image * p.pixels + pixel) * p.channels + first;
  f32 x[PER_ITEM][V];
  u32 lane[PER_ITEM];
  u64 at[PER_ITEM];
  bool inside[PER_ITEM];
  UNROLL
  for (u32 k = 0; k < PER_ITEM; k++) {
    u32 unit = item_id() + k * GROUP, own = divide(unit, p.packs);
    lane[k] = (unit - own * packs) * V;
    at[k] = start + (u64)own * p.channels + lane[k];
    inside[k] = own < pixels && first + lane[k] < p.channels;
    if (inside[k]) load_channels<T, V, WHOLE>(x[k], (const T *)p.x + at[k], p.channels - first - lane[k]);
  }

  u32 channel = first + item_id() / LANES;
  bool mine = channel < p.channels && item_id() / LANES < packs * V;
  f32 gate = 0;
  if (!p.weight) {
    if (mine) gate = widen(((const T *)p.hidden)[(u64)image * p.channels + channel]);
  } else {
    if (mine) {
      bool whole = p.inner % V == 0 && (p.weight | p.hidden) % 16 == 0;
      gate = whole ? part_of<T, V, true>(p, image, channel) : part_of<T, 1, false>(p, image, channel);
    }
    UNROLL
    for (u32 mask = 1; mask < LANES; mask *= 2) gate += lane_xor(gate, mask);
    if (mine && p.bias) gate += widen(((const T *)p.bias)[channel]);
    gate = clamp_(gate < 0 ? gate * p.slope : gate, p.low, p.high);
    gate = activate(gate, p.activation, p.act_a, p.act_b);
  }
  if (mine && item_id() % LANES == 0) gates[item_id() / LANES] = gate;
  barrier();

  UNROLL
  for (u32 k = 0; k < PER_ITEM; k++) {
    if (!inside[k]) continue;
    u32 count = p.channels - first - lane[k];
    UNROLL
    for (u32 v = 0; v < V; v++) x[k][v] *= gates[lane[k] + (WHOLE || v < count ? v : 0)];
    store_channels<T, V, WHOLE>((T *)p.y + at[k], x[k], count);
  }
}

template <class T, int V> DEVICE void excite_image(const ExciteParams &p) {
  if (p.channels % V == 0 && (p.x | p.y) % 16 == 0) excite<T, V, true>(p);
  else excite<T, V, false>(p);
}

KERNEL(GROUP) excite_nhwc(ExciteParams p) {
  if (p.type == F32) excite_image<f32, 4>(p);
  else if (p.type == F16) excite_image<f16, 8>(p);
  else excite_image<bf16, 8>(p);
}
