// A stand-in for libhipblaslt and librocblas beside stand_in.c, whose memory is the host's. It checks what it
// is told about a product. STAND_IN_BLAS=compute: it computes products of f32; else it leaves the result as
// it is, as the kernels of stand_in.c do.
//
// STAND_IN_BLAS_LOG: the file that gets a line a product, and at the end what was not given back.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long objects;

static FILE *log_file(void) {
  static FILE *file;
  const char *path = getenv("STAND_IN_BLAS_LOG");
  if (!file && path) {
    file = fopen(path, "w");
    setvbuf(file, NULL, _IOLBF, 0);
  }
  return file ? file : stderr;
}

__attribute__((destructor)) static void balance(void) { fprintf(log_file(), "balance %ld\n", objects); }

static void *make(size_t size) {
  objects++;
  return calloc(1, size);
}
static int drop(void *object) {
  objects -= object != NULL;
  free(object);
  return 0;
}

// Tells the runtime that a product took its time.
static void note_product(void) {
  void *runtime = dlopen(getenv("RUKH_HIP_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  void (*note)(void) = runtime ? (void (*)(void))dlsym(runtime, "stand_in_product") : NULL;
  if (note) note();
}

struct matrix {
  uint64_t rows, columns;
  int64_t ld, step;
  int32_t type, batch;
};

static int transposed(int operation) { return operation == 112; }

// D = relu(alpha op(A) op(B) + beta C + bias), column-major.
static void multiply(int op_a, int op_b, float alpha, const float *a, struct matrix ma, const float *b, struct matrix mb,
                     float beta, const float *c, float *d, struct matrix md, const float *bias, int relu) {
  const char *mode = getenv("STAND_IN_BLAS");
  note_product();
  if (!mode || strcmp(mode, "compute")) return;
  uint64_t inner = transposed(op_a) ? ma.rows : ma.columns;
  for (int i = 0; i < md.batch; i++, a += ma.step, b += mb.step, c += md.step, d += md.step)
    for (uint64_t row = 0; row < md.rows; row++)
      for (uint64_t column = 0; column < md.columns; column++) {
        double sum = 0;
        for (uint64_t k = 0; k < inner; k++)
          sum += (double)(transposed(op_a) ? a[k + row * ma.ld] : a[row + k * ma.ld]) *
                 (transposed(op_b) ? b[column + k * mb.ld] : b[k + column * mb.ld]);
        float x = alpha * (float)sum + (beta != 0 ? beta * c[row + column * md.ld] : 0) + (bias ? bias[row] : 0);
        d[row + column * md.ld] = relu && x < 0 ? 0 : x;
      }
}

// hipBLASLt

struct description {
  int32_t compute, scale, operation[2], bias_type;
  uint32_t epilogue;
  const void *bias;
};

int hipblasLtCreate(void **handle) { *handle = make(1); return 0; }
int hipblasLtDestroy(void *handle) { return drop(handle); }
int hipblasLtGetVersion(void *handle, int *version) {
  (void)handle;
  const char *text = getenv("STAND_IN_BLAS_VERSION");
  *version = text ? atoi(text) : 100100;
  return 0;
}
int hipblasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  if (ld < (int64_t)rows) return 3;
  struct matrix *m = *layout = make(sizeof *m);
  *m = (struct matrix){rows, columns, ld, 0, type, 1};
  return 0;
}
int hipblasLtMatrixLayoutSetAttribute(struct matrix *m, int attribute, const void *value, size_t size) {
  if (attribute == 0 && size == 4) return memcpy(&m->batch, value, 4), 0;
  if (attribute == 1 && size == 8) return memcpy(&m->step, value, 8), 0;
  return 3;
}
int hipblasLtMatrixLayoutDestroy(void *layout) { return drop(layout); }
int hipblasLtMatmulDescCreate(void **product, int compute, int scale) {
  struct description *d = *product = make(sizeof *d);
  *d = (struct description){compute, scale, {111, 111}, -1, 1, NULL};
  return 0;
}
int hipblasLtMatmulDescSetAttribute(struct description *d, int attribute, const void *value, size_t size) {
  void *fields[] = {&d->operation[0], &d->operation[1], &d->epilogue, &d->bias, &d->bias_type};
  if (attribute < 0 || attribute > 4 || size != (attribute == 3 ? 8 : 4)) return 3;
  memcpy(fields[attribute], value, size);
  return 0;
}
int hipblasLtMatmulDescDestroy(void *product) { return drop(product); }
int hipblasLtMatmulPreferenceCreate(void **preference) { *preference = make(8); return 0; }
int hipblasLtMatmulPreferenceSetAttribute(uint64_t *preference, int attribute, const void *value, size_t size) {
  if (attribute != 1 || size != 8) return 3;
  memcpy(preference, value, 8);
  return 0;
}
int hipblasLtMatmulPreferenceDestroy(void *preference) { return drop(preference); }

struct record {
  uint8_t algorithm[16];
  size_t most, workspace;
  int32_t status;
  float waves;
  int32_t reserved[4];
};

// One algorithm that works, one that wants too much memory, one that does not fit.
int hipblasLtMatmulAlgoGetHeuristic(void *handle, struct description *p, struct matrix *a, struct matrix *b,
                                    struct matrix *c, struct matrix *d, uint64_t *preference, int wanted,
                                    struct record *records, int *count) {
  (void)handle, (void)c;
  if (p->compute != 2 || p->scale != 0 || a->type != b->type || wanted < 3 || d->batch != a->batch) return 7;
  memset(records, 0, 3 * sizeof *records);
  for (int i = 0; i < 3; i++) records[i].algorithm[0] = 7 + i;
  records[0].workspace = 1024;
  records[1].workspace = *preference + 1;
  records[2].status = 7;
  *count = 3;
  return 0;
}
int hipblasLtMatmul(void *handle, struct description *p, const float *alpha, const void *a, struct matrix *ma,
                    const void *b, struct matrix *mb, const float *beta, const void *c, struct matrix *mc, void *d,
                    struct matrix *md, const uint8_t *algorithm, void *workspace, size_t size, void *stream) {
  (void)handle, (void)stream, (void)mc;
  if (algorithm[0] != 7 || size != 1024 || (uintptr_t)workspace % 256) return 3;
  memset(workspace, 0, size);
  fprintf(log_file(), "hipblasLtMatmul %d%d %lux%lux%lu epilogue %u\n", p->operation[0], p->operation[1], md->rows,
          md->columns, transposed(p->operation[0]) ? ma->rows : ma->columns, p->epilogue);
  multiply(p->operation[0], p->operation[1], *alpha, a, *ma, b, *mb, *beta, c, d, *md, p->epilogue & 4 ? p->bias : NULL,
           p->epilogue & 2);
  return 0;
}

// rocBLAS

struct handle {
  size_t query, size;
  int querying;
  void *workspace;
};

int rocblas_create_handle(struct handle **handle) { *handle = make(sizeof **handle); return 0; }
int rocblas_destroy_handle(void *handle) { return drop(handle); }
int rocblas_set_stream(void *handle, void *stream) { (void)handle, (void)stream; return 0; }
int rocblas_set_workspace(struct handle *h, void *workspace, size_t size) {
  h->workspace = workspace;
  h->size = size;
  return 0;
}
int rocblas_start_device_memory_size_query(struct handle *h) { h->querying = 1; h->query = 0; return 0; }
int rocblas_stop_device_memory_size_query(struct handle *h, size_t *size) {
  h->querying = 0;
  *size = h->query;
  return 0;
}
int rocblas_get_version_string(char *text, size_t size) { snprintf(text, size, "4.2.1.abcdef"); return 0; }

// Solution 11 needs memory, 12 fails.
int rocblas_gemm_strided_batched_ex(struct handle *h, int op_a, int op_b, int m, int n, int k, const float *alpha,
                                    const void *a, int a_type, int lda, int64_t a_step, const void *b, int b_type,
                                    int ldb, int64_t b_step, const float *beta, const void *c, int c_type, int ldc,
                                    int64_t c_step, void *d, int d_type, int ldd, int64_t d_step, int batch,
                                    int compute, int algorithm, int32_t solution, uint32_t flags) {
  (void)a_type, (void)b_type, (void)c_type, (void)ldc, (void)c_step, (void)flags;
  if (h->querying) {
    h->query = solution == 11 ? 512 : 0;
    return 9;
  }
  if (solution == 12 || compute != 151 || d_type != 151 || algorithm != (solution > 0)) return 1;
  if (solution == 11 && (h->size != 512 || !h->workspace)) return 5;
  fprintf(log_file(), "rocblas_gemm_strided_batched_ex %d%d %dx%dx%d solution %d\n", op_a, op_b, m, n, k, solution);
  struct matrix ma = {transposed(op_a) ? k : m, transposed(op_a) ? m : k, lda, a_step, 0, batch};
  struct matrix mb = {0, 0, ldb, b_step, 0, batch}, md = {m, n, ldd, d_step, 0, batch};
  multiply(op_a, op_b, *alpha, a, ma, b, mb, *beta, c, d, md, NULL, 0);
  return 0;
}
int rocblas_gemm_strided_batched_ex_get_solutions(struct handle *h, int op_a, int op_b, int m, int n, int k,
                                                  const void *alpha, const void *a, int a_type, int lda,
                                                  int64_t a_step, const void *b, int b_type, int ldb, int64_t b_step,
                                                  const void *beta, const void *c, int c_type, int ldc,
                                                  int64_t c_step, void *d, int d_type, int ldd, int64_t d_step,
                                                  int batch, int compute, int algorithm, uint32_t flags, int *list,
                                                  int *count) {
  (void)h, (void)op_a, (void)op_b, (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)a_type, (void)lda;
  (void)a_step, (void)b, (void)b_type, (void)ldb, (void)b_step, (void)beta, (void)c, (void)c_type, (void)ldc;
  (void)c_step, (void)d, (void)d_type, (void)ldd, (void)d_step, (void)batch, (void)compute, (void)flags;
  if (algorithm != 1) return 1;
  if (list) {
    list[0] = 11;
    list[1] = 12;
  }
  *count = 2;
  return 0;
}
