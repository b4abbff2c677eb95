/* A program that looks like flux from afar: it answers `flux version` with the help of a library, runs python for `flux python`,
 * and has its other commands where Flux has them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <answer.h>

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";

    if (strcmp(command, "version") == 0) {
        printf("commands: 0.0.%d\n", answer());
        return 0;
    }
    if (strcmp(command, "python") == 0) {
        setenv("PYTHONPATH", FLUX_PYTHON, 1);
        execlp("python3", "python3", "-m", "flux", (char *)NULL);
        perror("python3");
        return 127;
    }
    execv(FLUX_COMMANDS "/flux-broker", argv);
    perror(FLUX_COMMANDS "/flux-broker");
    return 127;
}
