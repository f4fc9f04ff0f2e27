// Runs cases as a C++ program for ONNX Runtime does, with its header: cases PROVIDER CASE...
//
// PROVIDER is cpu, or a provider's name. A case is a folder as cases.py writes it.
#include <onnxruntime_cxx_api.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

struct Tensor {
    std::string name, type;
    double tolerance = 0;
    std::vector<int64_t> dims;
    std::vector<char> data;

    size_t count() const {
        size_t found = 1;
        for (int64_t dim : dims)
            found *= static_cast<size_t>(dim);
        return found;
    }

    // The elements of a tensor of strings, each of which ends with a NUL.
    std::vector<const char *> texts() const {
        std::vector<const char *> found;
        for (const char *text = data.data(); text < data.data() + data.size(); text += std::strlen(text) + 1)
            found.push_back(text);
        return found;
    }
};

struct Case {
    bool strict = false;
    std::vector<Tensor> inputs, outputs;
};

static std::vector<char> read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw std::runtime_error(path + " cannot be opened");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

static Case read_case(const std::string &folder) {
    Case made;
    const std::vector<char> content = read_file(folder + "/tensors.txt");
    std::istringstream lines(std::string(content.begin(), content.end()));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        std::string role, file;
        Tensor tensor;
        fields >> role;
        if (role == "strict") {
            made.strict = true;
            continue;
        }
        if (!(fields >> tensor.name >> tensor.type >> tensor.tolerance >> file) || (role != "input" && role != "output"))
            throw std::runtime_error("tensors.txt has the line " + line);
        for (int64_t dim = 0; fields >> dim;)
            tensor.dims.push_back(dim);
        tensor.data = read_file(folder + "/" + file);
        (role == "input" ? made.inputs : made.outputs).push_back(std::move(tensor));
    }
    if (made.outputs.empty())
        throw std::runtime_error("tensors.txt has no outputs");
    return made;
}

static Ort::Value value_of(Tensor &given, const Ort::MemoryInfo &memory) {
    if (given.type == "string") {
        Ort::AllocatorWithDefaultOptions allocator;
        Ort::Value made = Ort::Value::CreateTensor(allocator, given.dims.data(), given.dims.size(),
                                                   ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
        const std::vector<const char *> texts = given.texts();
        made.FillStringTensor(texts.data(), texts.size());
        return made;
    }
    const auto type = given.type == "int64" ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 : ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    return Ort::Value::CreateTensor(memory, given.data.data(), given.data.size(), given.dims.data(), given.dims.size(), type);
}

static bool same_elements(const Ort::Value &found, ONNXTensorElementDataType type, const Tensor &wanted) {
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING && wanted.type == "string") {
        std::vector<char> content(found.GetStringTensorDataLength());
        std::vector<size_t> offsets(wanted.count());
        found.GetStringTensorContent(content.data(), content.size(), offsets.data(), offsets.size());
        const std::vector<const char *> texts = wanted.texts();
        for (size_t i = 0; i < texts.size(); i++) {
            const size_t end = i + 1 < offsets.size() ? offsets[i + 1] : content.size();
            if (std::string(content.data() + offsets[i], content.data() + end) != texts[i])
                return false;
        }
        return true;
    }
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 && wanted.type == "int64")
        return std::memcmp(found.GetTensorData<int64_t>(), wanted.data.data(), wanted.data.size()) == 0;
    if (type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT || wanted.type != "float32")
        return false;
    std::vector<float> expected(wanted.count());
    std::memcpy(expected.data(), wanted.data.data(), expected.size() * sizeof(float));
    for (size_t i = 0; i < expected.size(); i++)
        if (!(std::fabs(static_cast<double>(found.GetTensorData<float>()[i]) - expected[i]) <= wanted.tolerance))
            return false;
    return true;
}

static void compare(const std::vector<Ort::Value> &found, const Case &given) {
    for (size_t i = 0; i < given.outputs.size(); i++) {
        const auto info = found.at(i).GetTensorTypeAndShapeInfo();
        if (info.GetShape() != given.outputs[i].dims)
            throw std::runtime_error(given.outputs[i].name + " has another shape");
        if (!same_elements(found[i], info.GetElementType(), given.outputs[i]))
            throw std::runtime_error(given.outputs[i].name + " has other elements");
    }
}

// Two runs whose outputs the library makes, and two with an io binding.
static void run(Ort::Session &session, Case &given) {
    const Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    std::vector<const char *> input_names, output_names;
    std::vector<Ort::Value> inputs;
    Ort::IoBinding binding(session);
    for (Tensor &tensor : given.inputs) {
        input_names.push_back(tensor.name.c_str());
        inputs.push_back(value_of(tensor, memory));
        binding.BindInput(tensor.name.c_str(), inputs.back());
    }
    for (const Tensor &tensor : given.outputs) {
        output_names.push_back(tensor.name.c_str());
        binding.BindOutput(tensor.name.c_str(), memory);
    }
    for (int turn = 0; turn < 2; turn++) {
        compare(session.Run(Ort::RunOptions{nullptr}, input_names.data(), inputs.data(), inputs.size(), output_names.data(),
                            output_names.size()),
                given);
        session.Run(Ort::RunOptions{nullptr}, binding);
        compare(binding.GetOutputValues(), given);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: cases PROVIDER CASE...\n");
        return 2;
    }
    const std::string provider = argv[1];
    Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "cases");
    int failed = 0;
    for (int i = 2; i < argc; i++) {
        try {
            Case given = read_case(argv[i]);
            Ort::SessionOptions options;
            if (provider != "cpu") {
                options.AppendExecutionProvider(provider, std::unordered_map<std::string, std::string>{{"device_id", "0"}});
                if (given.strict)
                    options.AddConfigEntry("session.disable_cpu_ep_fallback", "1");
            }
            const std::string path = std::string(argv[i]) + "/model.onnx";
            const std::vector<char> bytes = read_file(path);
            Ort::Session from_path(env, path.c_str(), options), from_memory(env, bytes.data(), bytes.size(), options);
            run(from_path, given);
            run(from_memory, given);
        } catch (const std::exception &e) {
            failed++;
            std::fprintf(stderr, "%s: %s\n", argv[i], e.what());
        }
    }
    std::printf("C++, API %d, %s: %d passed, %d failed\n", ORT_API_VERSION, argv[1], argc - 2 - failed, failed);
    return failed > 0;
}
