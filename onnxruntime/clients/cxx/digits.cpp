// Runs the digits model as a C++ program for ONNX Runtime does, with its header: digits MODEL [PROVIDER]
#include <onnxruntime_cxx_api.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <unordered_map>
#include <vector>

static Ort::SessionOptions options_for(const char *provider) {
    Ort::SessionOptions options;
    options.SetIntraOpNumThreads(1);
    options.SetGraphOptimizationLevel(GraphOptimizationLevel::ORT_ENABLE_ALL);
    options.AddConfigEntry("session.some.key", "a value");
    if (provider != nullptr)
        options.AppendExecutionProvider(provider, std::unordered_map<std::string, std::string>{{"device_id", "0"}});
    return options;
}

static std::vector<float> run(Ort::Session &session) {
    std::vector<float> pixels(64);
    for (int i = 0; i < 64; i++)
        pixels[i] = static_cast<float>(i % 7) / 7.0f;
    const int64_t shape[] = {1, 1, 8, 8};
    Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    Ort::Value image = Ort::Value::CreateTensor<float>(memory, pixels.data(), pixels.size(), shape, 4);
    const char *inputs[] = {"image"}, *outputs[] = {"scores"};
    std::vector<Ort::Value> found = session.Run(Ort::RunOptions{nullptr}, inputs, &image, 1, outputs, 1);
    const float *scores = found.at(0).GetTensorData<float>();
    const auto dims = found[0].GetTensorTypeAndShapeInfo().GetShape();
    if (dims != std::vector<int64_t>{1, 10})
        throw std::runtime_error("the shape is wrong");

    Ort::IoBinding binding(session);
    binding.BindInput("image", image);
    binding.BindOutput("scores", memory);
    session.Run(Ort::RunOptions{nullptr}, binding);
    if (std::memcmp(binding.GetOutputValues().at(0).GetTensorData<float>(), scores, 40) != 0 ||
        binding.GetOutputNames().at(0) != "scores")
        throw std::runtime_error("the binding's output differs");
    return std::vector<float>(scores, scores + 10);
}

static void values() {
    Ort::AllocatorWithDefaultOptions allocator;
    const int64_t shape[] = {3};
    Ort::Value words = Ort::Value::CreateTensor(allocator, shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
    const char *texts[] = {"rukh", "", "roc"};
    words.FillStringTensor(texts, 3);
    words.FillStringTensorElement("bird", 1);
    const size_t length = words.GetStringTensorDataLength();
    std::vector<char> content(length);
    std::vector<size_t> offsets(3);
    words.GetStringTensorContent(content.data(), length, offsets.data(), 3);
    if (std::string(content.begin(), content.end()) != "rukhbirdroc" || offsets[2] != 8)
        throw std::runtime_error("the strings differ");
    std::vector<Ort::Value> items;
    items.push_back(std::move(words));
    Ort::Value sequence = Ort::Value::CreateSequence(items);
    if (sequence.GetCount() != 1 || sequence.GetTypeInfo().GetONNXType() != ONNX_TYPE_SEQUENCE)
        throw std::runtime_error("the sequence differs");
    sequence.GetValue(0, allocator);
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "digits");
    Ort::SessionOptions options = options_for(argc > 2 ? argv[2] : nullptr);
    Ort::Session session(env, argv[1], options);
    std::ifstream file(argv[1], std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    Ort::Session second(env, bytes.data(), bytes.size(), options);

    Ort::AllocatorWithDefaultOptions allocator;
    const auto name = session.GetInputNameAllocated(0, allocator);
    const auto producer = session.GetModelMetadata().GetProducerNameAllocated(allocator);
    const auto scores = run(session), again = run(second);
    values();
    std::printf("%s by %s: the score of 8 is %.4f\n", name.get(), producer.get(), scores[8]);
    int wrong = std::fabs(scores[8] - 0.5513f) > 1e-3f || scores != again;
    try {
        Ort::Session missing(env, "/nowhere.onnx", options);
        wrong = 1;
    } catch (const Ort::Exception &e) {
        wrong |= e.GetOrtErrorCode() != ORT_NO_SUCHFILE;
    }
    return wrong;
}
