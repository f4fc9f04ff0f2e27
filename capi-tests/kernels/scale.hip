// What the operator of operators_gpu.c launches. Compiled by clang alone:
//   clang -O2 -x hip --offload-arch=gfx1100 --no-gpu-bundle-output -nogpuinc -nogpulib -mcode-object-version=4
//         --cuda-device-only scale.hip -o scale.co

extern "C" __attribute__((global)) void scale(const float *from, float *to, float factor, unsigned count) {
  unsigned i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < count) to[i] = from[i] * factor;
}
