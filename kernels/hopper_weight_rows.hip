// Products of few rows of f16 with weights of 4 bits; see weight_rows_hopper.h.
#include "rukh/weight_rows_hopper.h"

// The build gives kernels with such names their clusters (kernels/cluster.rs).
#define KERNEL_OF_ROWS(rows, cluster)                                                                                 \
  KERNEL_OF_GROUPS(ROWS_WORKERS + 32 + rows / 8 * 32) weight_rows_##rows##_cluster##cluster(const WeightRowsParams p) { \
    u64 params;                                                                                                       \
    FIND_PARAMETERS(weight_rows_##rows##_cluster##cluster, params);                                                   \
    weight_rows<rows / 8, cluster>(p, params);                                                                        \
  }
#define KERNELS_OF_ROWS(cluster) KERNEL_OF_ROWS(8, cluster) KERNEL_OF_ROWS(16, cluster)

KERNELS_OF_ROWS(1)
KERNELS_OF_ROWS(2)
KERNELS_OF_ROWS(4)
