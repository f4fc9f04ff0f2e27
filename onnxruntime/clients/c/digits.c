/* Runs the digits model as a C program for ONNX Runtime does: digits MODEL [PROVIDER]
 *
 * Needs onnxruntime_c_api.h of any version since 1.16. */
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const OrtApi *ort;

static void check(OrtStatus *status) {
    if (status != NULL) {
        fprintf(stderr, "%s\n", ort->GetErrorMessage(status));
        exit(1);
    }
}

static OrtSession *open_session(OrtEnv *env, const char *model, const char *provider) {
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    check(ort->CreateSessionOptions(&options));
    check(ort->SetIntraOpNumThreads(options, 2));
    check(ort->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_ALL));
    check(ort->AddSessionConfigEntry(options, "session.intra_op.allow_spinning", "0"));
    if (provider != NULL && strcmp(provider, "rocm") == 0) {
        OrtROCMProviderOptions rocm;
        memset(&rocm, 0, sizeof rocm);
        rocm.do_copy_in_default_stream = 1;
        rocm.gpu_mem_limit = SIZE_MAX;
        check(ort->SessionOptionsAppendExecutionProvider_ROCM(options, &rocm));
    } else if (provider != NULL && strcmp(provider, "migraphx") == 0) {
        OrtMIGraphXProviderOptions migraphx;
        memset(&migraphx, 0, sizeof migraphx);
        migraphx.migraphx_fp16_enable = 0;
        check(ort->SessionOptionsAppendExecutionProvider_MIGraphX(options, &migraphx));
    }
    check(ort->CreateSession(env, model, options, &session));
    ort->ReleaseSessionOptions(options);
    return session;
}

static void describe(const OrtSession *session) {
    OrtAllocator *allocator = NULL;
    char *name = NULL;
    OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    int64_t dims[4] = {0};
    check(ort->GetAllocatorWithDefaultOptions(&allocator));
    check(ort->SessionGetInputName(session, 0, allocator, &name));
    check(ort->SessionGetInputTypeInfo(session, 0, &type));
    check(ort->CastTypeInfoToTensorInfo(type, &tensor));
    check(ort->GetDimensions(tensor, dims, 4));
    printf("%s [%ld, %ld, %ld, %ld]\n", name, (long)dims[0], (long)dims[1], (long)dims[2], (long)dims[3]);
    check(ort->AllocatorFree(allocator, name));
    ort->ReleaseTypeInfo(type);
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    const OrtApiBase *base = OrtGetApiBase();
    ort = base->GetApi(ORT_API_VERSION);
    if (ort == NULL || base->GetApi(1000) != NULL)
        return 3;
    OrtEnv *env = NULL;
    OrtMemoryInfo *memory = NULL;
    OrtValue *image = NULL, *scores = NULL;
    float pixels[64], *found = NULL;
    const int64_t shape[4] = {1, 1, 8, 8};
    const char *input = "image", *output = "scores";
    for (int i = 0; i < 64; i++)
        pixels[i] = (float)(i % 7) / 7.0f;
    check(ort->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "digits", &env));
    OrtSession *session = open_session(env, argv[1], argc > 2 ? argv[2] : NULL);
    describe(session);
    check(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
    check(ort->CreateTensorWithDataAsOrtValue(memory, pixels, sizeof pixels, shape, 4, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                              &image));
    check(ort->Run(session, NULL, &input, (const OrtValue *const *)&image, 1, &output, 1, &scores));
    check(ort->GetTensorMutableData(scores, (void **)&found));
    int best = 0;
    for (int i = 1; i < 10; i++)
        if (found[i] > found[best])
            best = i;
    printf("API %d: the best is %d with %.4f\n", ORT_API_VERSION, best, found[best]);
    int wrong = best != 8 || found[8] < 0.551 || found[8] > 0.5515;

    /* A wrong call is a status. */
    OrtStatus *status = ort->Run(session, NULL, &output, (const OrtValue *const *)&image, 1, &output, 1, &scores);
    wrong |= status == NULL || ort->GetErrorCode(status) == ORT_OK;
    ort->ReleaseStatus(status);

    ort->ReleaseValue(scores);
    ort->ReleaseValue(image);
    ort->ReleaseMemoryInfo(memory);
    ort->ReleaseSession(session);
    ort->ReleaseEnv(env);
    return wrong;
}
