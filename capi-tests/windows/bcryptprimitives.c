/* bcryptprimitives.dll for versions of wine that have none, that of Debian 12 among them. Every Windows has it, and
 * Rust's standard library asks it for random numbers. Only tests under such a wine get this one. */

#include <windows.h>

/* RtlGenRandom, by the name that advapi32.dll exports it by. */
BOOLEAN WINAPI SystemFunction036(void *buffer, ULONG size);

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *buffer, SIZE_T size);

BOOL WINAPI ProcessPrng(BYTE *buffer, SIZE_T size) {
    while (size > 0) {
        ULONG part = size < 1 << 20 ? (ULONG)size : 1 << 20;
        if (!SystemFunction036(buffer, part)) return FALSE;
        buffer += part;
        size -= part;
    }
    return TRUE;
}
