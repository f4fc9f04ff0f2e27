// Several products of one row of f16 with weights of 4 bits in one launch; see weight_chain.h.
#include "rukh/weight_chain.h"

// At most 128 registers, so that attention finds room beside it.
KERNEL_OF_GROUPS(512) weight_chain_f16_4(const ChainParams p) {
  u64 params;
  FIND_PARAMETERS(weight_chain_f16_4, params);
  weight_chain(p, params);
}
