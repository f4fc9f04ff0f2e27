#!/bin/sh
# Runs the tests of the CPU's kernels with fewer vector instructions than this processor has:
#
#   scripts/test_levels.sh [quick]
#
# RUKH_CPU_ISA limits what the kernels use. Without `quick` the standard's cases are run as well, and the unit tests
# once more under qemu-user, which also limits `rten-gemm`, which chooses for itself. Levels that the processor does
# not have are reported as not run.
set -eu

quick=${1-}
# The program with the unit tests, by its path: built for this package alone, it would be compiled anew with other features.
tests=$(cargo test --quiet --workspace --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\/rukh_cpu-[^"]*\)".*/\1/p' | tail -n 1)
[ -x "$tests" ] || { echo "cargo names no program with the unit tests of rukh-cpu" >&2; exit 1; }
has() { grep -qw "$1" /proc/cpuinfo; }

run() {
    level=$1
    echo "level $level: unit tests"
    (cd cpu && RUKH_CPU_ISA=$level "$tests" --quiet)
    if [ "$quick" != quick ]; then
        echo "level $level: the standard's cases"
        RUKH_CPU_ISA=$level RUKH_ONNX_DATA=${RUKH_ONNX_DATA:-$PWD/build/onnx-data} \
            cargo test --quiet --workspace --test conformance
    fi
}

# What a processor has at most is what the tests without a limit use, but for `portable`: other kinds have vectors, too.
levels=portable
if has avx2 && has fma && has f16c; then levels="$levels avx2"; fi
if has avx512bw && has avx512vl && has avx512dq; then levels="$levels avx512"; fi
if has avx512_vnni && has avx512_bf16; then levels="$levels avx512dot"; fi
if has amx_tile && has amx_int8 && has amx_bf16; then levels="$levels native"; fi
native=${levels##* }
for level in $levels; do
    if [ "$level" = "$native" ] && [ "$level" != portable ]; then
        echo "level $level: the tests without a limit"
    else
        run "$level"
    fi
done
for level in avx2 avx512 avx512dot; do
    case " $levels " in *" $level "*) ;; *) echo "level $level: not run, this processor has none" ;; esac
done
[ "$quick" != quick ] || exit 0

if [ "$(uname -m)" != x86_64 ] || ! command -v qemu-x86_64 >/dev/null; then
    echo "qemu-user: not run, it is for x86-64 and the command qemu-x86_64"
    exit 0
fi
for cpu in qemu64 Haswell; do
    echo "qemu-user as $cpu: unit tests"
    (cd cpu && qemu-x86_64 -cpu $cpu "$tests" --quiet)
done
