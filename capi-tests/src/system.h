/* What tests need of the system besides C's own library, on POSIX systems and on Windows. To be included before any
 * other header. */

#ifndef SYSTEM_H
#define SYSTEM_H

#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GNUC__
#define SYSTEM_UNUSED __attribute__((unused))
#else
#define SYSTEM_UNUSED
#endif

enum { FOLDER_SIZE = 256 };

#ifdef _WIN32

#include <windows.h>

typedef HANDLE process;

/* Makes an empty folder, and tells its path. 0: it cannot be made. */
SYSTEM_UNUSED static int make_folder(char folder[FOLDER_SIZE]) {
    static unsigned number;
    char temporary[FOLDER_SIZE - 48];
    if (GetTempPathA(sizeof temporary, temporary) - 1 >= sizeof temporary - 1) return 0;
    do {
        snprintf(folder, FOLDER_SIZE, "%srukh-%lu-%u", temporary, GetCurrentProcessId(), number++);
        if (CreateDirectoryA(folder, NULL)) return 1;
    } while (GetLastError() == ERROR_ALREADY_EXISTS);
    return 0;
}

SYSTEM_UNUSED static int remove_empty_folder(const char *folder) {
    return RemoveDirectoryA(folder) != 0;
}

SYSTEM_UNUSED static void wait_milliseconds(int milliseconds) {
    Sleep((DWORD)milliseconds);
}

/* Runs this program once more, with these arguments. NULL: it cannot be started. */
SYSTEM_UNUSED static process run_again(const char *first, const char *second) {
    char program[MAX_PATH], line[3 * MAX_PATH];
    STARTUPINFOA startup;
    PROCESS_INFORMATION started;
    if (GetModuleFileNameA(NULL, program, sizeof program) - 1 >= sizeof program - 1) return NULL;
    snprintf(line, sizeof line, "\"%s\" \"%s\" \"%s\"", program, first, second);
    memset(&startup, 0, sizeof startup);
    startup.cb = sizeof startup;
    if (!CreateProcessA(program, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &started)) return NULL;
    CloseHandle(started.hThread);
    return started.hProcess;
}

/* Ends a process at once, whatever it does. */
SYSTEM_UNUSED static int kill_process(process running) {
    int ended = TerminateProcess(running, 9) && WaitForSingleObject(running, INFINITE) == WAIT_OBJECT_0;
    return CloseHandle(running) && ended;
}

SYSTEM_UNUSED static void *open_library(const char *name) {
    return (void *)LoadLibraryA(name);
}

SYSTEM_UNUSED static void *function_of(void *library, const char *name) {
    FARPROC function = GetProcAddress((HMODULE)library, name);
    void *pointer;
    memcpy(&pointer, &function, sizeof pointer);
    return pointer;
}

/* As fopen, of a path in UTF-8. */
SYSTEM_UNUSED static FILE *open_path(const char *path, const char *mode) {
    wchar_t wide[1024], wide_mode[8];
    if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, 1024)) return NULL;
    if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, mode, -1, wide_mode, 8)) return NULL;
    return _wfopen(wide, wide_mode);
}

SYSTEM_UNUSED static int remove_path(const char *path) {
    wchar_t wide[1024];
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, 1024) && DeleteFileW(wide);
}

#else

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef pid_t process;

/* Makes an empty folder, and tells its path. 0: it cannot be made. */
SYSTEM_UNUSED static int make_folder(char folder[FOLDER_SIZE]) {
    return mkdtemp(strcpy(folder, "/tmp/rukh-XXXXXX")) != NULL;
}

SYSTEM_UNUSED static int remove_empty_folder(const char *folder) {
    return rmdir(folder) == 0;
}

SYSTEM_UNUSED static void wait_milliseconds(int milliseconds) {
    struct timespec wait;
    wait.tv_sec = milliseconds / 1000;
    wait.tv_nsec = milliseconds % 1000 * 1000000L;
    nanosleep(&wait, NULL);
}

/* Ends a process at once, whatever it does. */
SYSTEM_UNUSED static int kill_process(process running) {
    return kill(running, SIGKILL) == 0 && waitpid(running, NULL, 0) == running;
}

/* As fopen, of a path in UTF-8. */
SYSTEM_UNUSED static FILE *open_path(const char *path, const char *mode) {
    return fopen(path, mode);
}

SYSTEM_UNUSED static int remove_path(const char *path) {
    return remove(path) == 0;
}

#endif

/* How many files a folder has; -1: it cannot be read. */
SYSTEM_UNUSED static int count_files(const char *folder) {
    DIR *directory = opendir(folder);
    struct dirent *entry;
    int count = 0;
    if (directory == NULL) return -1;
    while ((entry = readdir(directory)) != NULL) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

/* Removes a folder and the files in it. 0: it is still there. */
SYSTEM_UNUSED static int remove_folder(const char *folder) {
    DIR *directory = opendir(folder);
    struct dirent *entry;
    char path[2 * FOLDER_SIZE];
    if (directory == NULL) return 0;
    while ((entry = readdir(directory)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') remove(path);
    }
    closedir(directory);
    return remove_empty_folder(folder);
}

#endif
