#include "answer.h"

#include <zlib.h>

/* The version of zlib counts for nothing; the call makes the library need another one of the system. */
int answer(void)
{
    return zlibVersion()[0] == '1' ? 42 : 0;
}
