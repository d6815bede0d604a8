/* Which of the compiled instruction sets this processor, and its operating system, can run. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Compilers have __builtin_cpu_supports for this, but not all of them a library to go with it. */
#if defined(__x86_64__) || defined(_M_X64)
#if defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
static void ask(int leaf, unsigned answer[4]) { __cpuidex((int*)answer, leaf, 0); }
static unsigned saved_registers(void) { return (unsigned)_xgetbv(0); }
#else
#include <cpuid.h>
static void ask(int leaf, unsigned answer[4]) {
    __cpuid_count(leaf, 0, answer[0], answer[1], answer[2], answer[3]);
}
static unsigned saved_registers(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}
#endif

enum { EAX, EBX, ECX, EDX };

static int has(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

/* 0: neither, 1: AVX2, 2: AVX-512 as well. The system must save the registers, too. */
static int rank_of_processor(void) {
    const unsigned osxsave_and_avx = 1u << 27 | 1u << 28;
    const unsigned avx2 = 1u << 5;
    const unsigned avx512_f_dq_bw_vl = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
    const unsigned ymm_saved = 0x6, zmm_saved = 0xe6;
    unsigned basic[4], features[4], extended[4];
    ask(0, basic);
    ask(1, features);
    if (basic[EAX] < 7 || !has(features[ECX], osxsave_and_avx)) return 0;
    ask(7, extended);
    if (!has(saved_registers(), ymm_saved) || !has(extended[EBX], avx2)) return 0;
    return has(saved_registers(), zmm_saved) && has(extended[EBX], avx512_f_dq_bw_vl) ? 2 : 1;
}
#else
static int rank_of_processor(void) { return 0; }
#endif

static PyObject* levels(PyObject* self, PyObject* unused) {
    (void)self, (void)unused;
    const int rank = rank_of_processor();
    if (rank == 2) return Py_BuildValue("(sss)", "avx512", "avx2", "baseline");
    if (rank == 1) return Py_BuildValue("(ss)", "avx2", "baseline");
    return Py_BuildValue("(s)", "baseline");
}

static PyMethodDef methods[] = {
    {"levels", levels, METH_NOARGS, "Instruction sets that can be run here, the best first."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_processor", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__processor(void) { return PyModule_Create(&definition); }
