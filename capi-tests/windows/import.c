/* A program without a C library, linked by the import library of Microsoft's tools: it ends with 0 when the DLL is of the
 * header's version. */

#include <rukh/rukh.h>

int start(void);

int start(void) {
    return rukh_abi_version() == RUKH_ABI_VERSION ? 0 : 1;
}
