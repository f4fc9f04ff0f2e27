// What rukh.hpp has beyond opening and running: options by name, facts of models, artifacts, memory, threads of one's own.

#include <rukh/rukh.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>

#include "check.h"

using Texts = std::vector<std::string>;

static bool has(const Texts &texts, const char *text) {
    return std::find(texts.begin(), texts.end(), text) != texts.end();
}

static rukh::Environment with_threads_of_its_own(std::atomic<int> &loops) {
    rukh::EnvironmentOptions options = rukh::EnvironmentOptions::create().value();
    CHECK((options.keys().value() == Texts{"log_level", "threads"}));
    CHECK(options.option("log_level").value() == "warning");
    options.set_parallel_for(3, [&loops](std::size_t count, const std::function<void(std::size_t)> &body) {
        loops++;
        std::vector<std::thread> threads;
        for (std::size_t i = 1; i < count; i++) threads.emplace_back(body, i);
        body(0);
        for (std::thread &thread : threads) thread.join();
    }).value();
    CHECK(!options.set_parallel_for(0, [](std::size_t, const std::function<void(std::size_t)> &) {}));
    return rukh::Environment::create(options).value();
}

static void library(const rukh::Environment &environment) {
    CHECK(rukh::version_number() / 1000 == 1 && rukh::abi_version() == RUKH_ABI_VERSION);
    CHECK(rukh::provider_count().value() == rukh::providers().value().size());
    CHECK(has(rukh::providers().value(), "cpu"));
    CHECK(environment.provider_reason("cpu").value().empty());
    CHECK(!environment.provider_reason("tpu"));
    CHECK(rukh::report().value().front() == '{');
    CHECK(!environment.device("cpu").value().property("threads").value().empty());
    CHECK(environment.device("cpu").value().property("horns").value().empty());
    CHECK(environment.thread_count().value() == 3);

    const rukh::Error error{RUKH_ERROR_UNSUPPORTED, "as a test says"};
    const rukh::Error same = rukh::from_c(rukh::to_c(error));
    CHECK(same.status == error.status && same.message == error.message);
}

static void options() {
    rukh::SessionOptions options = rukh::SessionOptions::create().value();
    options.set_load(RUKH_LOAD_READ).value();
    options.set_optimization(RUKH_OPTIMIZATION_BASIC).value();
    options.set_fallback(RUKH_FALLBACK_ERROR).value();
    options.set_profiling(true).value();
    options.set_threads(2).value();
    CHECK(options.option("load").value() == "read" && options.option("fallback").value() == "error");
    CHECK(options.option("optimization").value() == "basic" && options.option("intra_op_threads").value() == "2");
    CHECK(options.option("profiling").value() == "1" && has(options.keys().value(), "plan_cache"));
    options.add_provider("hip", {{"device_id", "0"}}).value();
    CHECK(options.provider_count().value() == 1 && options.provider_name(0).value() == "hip");
    CHECK(has(options.provider_keys(0).value(), "device_id") && options.provider_option(0, "device_id").value() == "0");
    CHECK(!options.set_external_allocator(nullptr, nullptr, nullptr, nullptr));
    CHECK(!options.load_operators("/nowhere.so"));
    CHECK(options.clone().value().option("load").value() == "read");

    rukh::RunOptions run = rukh::RunOptions::create().value();
    run.set("tag", "mine").value();
    CHECK(run.option("tag").value() == "mine" && has(run.keys().value(), "timeout_ms"));
}

static void facts(rukh::Environment &environment) {
    rukh::SessionOptions options = rukh::SessionOptions::create().value();
    options.cancel().value();
    CHECK(rukh::Session::open(environment, model_path("linear"), options).error().status == RUKH_ERROR_CANCELLED);
    options.reset().value();
    const rukh::Session session = rukh::Session::open(environment, model_path("linear"), options).value();
    CHECK(session.input_index("x").value() == 0 && session.output_index("y").value() == 0 && !session.input_index("y"));
    const rukh::Port x = session.inputs().value()[0];
    CHECK((x.dims == Texts{"batch", ""}) && session.outputs().value()[0].dims[0] == "batch");
    CHECK(session.model_text(RUKH_MODEL_GRAPH_NAME).value() == "linear");
    CHECK(session.model_version().value().model == 3 && session.model_version().value().ir == 8);
    CHECK(session.properties().value().size() == 2 && session.properties().value()[0].second == "rukh");
    CHECK(session.opsets().value().size() == 1 && session.opsets().value()[0].second == 17);
    const std::vector<rukh::Placement> placement = session.placement().value();
    CHECK(placement.size() >= 1 && placement[0].provider == "cpu" && placement[0].device_id == 0);
    CHECK(session.load_counter(RUKH_LOAD_MAPPED_BYTES).value() > 0);
    CHECK(session.plan().value().front() == '{');
    for (const rukh::Port &port : session.overridable().value()) CHECK(!port.name.empty() && port.kind == RUKH_KIND_TENSOR);
    CHECK(!environment.load_operators("/nowhere.so"));
    CHECK(!rukh::tune(environment, options, ""));
    CHECK(!rukh::OperatorRegistry(nullptr).set_error("none"));
    CHECK(!rukh::OperatorRegistry(nullptr).add(rukh::Operator()));

    const rukh::Value value = rukh::Value::copy_of(std::vector<float>{1, 2}, {2}).value();
    CHECK(value.element_count().value() == 2);
    CHECK(rukh::Value::from_dlpack_legacy(value.to_dlpack_legacy().value()).value().element_count().value() == 2);
}

// What the log tells of a run that asks for it.
static void log() {
    std::atomic<int> nodes{0}, others{0};
    rukh::EnvironmentOptions settings = rukh::EnvironmentOptions::create().value();
    settings.set_log_callback(RUKH_LOG_ERROR, [&](const rukh::LogRecord &record) {
        CHECK(!record.message().empty() && record.location().find(".rs:") != std::string_view::npos);
        if (record.category() == "run" && record.session() == "mine" && record.run() == "first") {
            (record.node().empty() ? others : nodes)++;
            CHECK(record.level() == RUKH_LOG_DEBUG);
        }
    }).value();
    rukh::Environment environment = rukh::Environment::create(settings).value();
    rukh::SessionOptions options = rukh::SessionOptions::create().value();
    options.set("log_id", "mine").value();
    const rukh::Session session = rukh::Session::open(environment, model_path("add"), options).value();
    const rukh::Value a = rukh::Value::copy_of(std::vector<float>{1, 2}, {2}).value();
    rukh::RunOptions run = rukh::RunOptions::create().value();
    run.set("tag", "first").value();
    session.run({{"a", &a}, {"b", &a}}, {"sum"}, run).value();
    CHECK(nodes == 0 && others == 0);
    run.set("log_level", "debug").value();
    session.run({{"a", &a}, {"b", &a}}, {"sum"}, run).value();
    CHECK(nodes > 0 && others == 1);
    environment.set_log_level(RUKH_LOG_DEBUG).value();
    CHECK(!environment.set_log_level(7));
}

static void artifacts(const rukh::Environment &environment) {
    rukh::CompileOptions options = rukh::CompileOptions::create().value();
    options.set("targets", "cpu").value();
    CHECK(options.option("targets").value() == "cpu" && has(options.keys().value(), "weights"));
    std::uint64_t steps = 0;
    options.set_progress([&steps](std::string_view step, std::uint64_t, std::uint64_t) {
        steps += !step.empty();
        return RUKH_OK;
    }).value();
    const std::string file = "cpp-reach.rukh";
    rukh::compile_model(environment, model_path("linear"), file, options).value();
    CHECK(steps > 0);
    CHECK(!rukh::compile_model(environment, "no model", 8, file, options));
    const rukh::Artifact artifact = rukh::Artifact::open(environment, file).value();
    CHECK(artifact.info().value().front() == '{');
    CHECK(artifact.check().value().verdict == RUKH_ARTIFACT_OPTIMAL);
    CHECK(rukh::Session::open(environment, file).value().inputs().value().size() == 1);
    CHECK(std::remove(file.c_str()) == 0);
}

// Where there is no GPU each call says so.
static void memory(const rukh::Environment &environment) {
    const rukh::DeviceMemory memory(environment);
    const bool gpu = environment.device("hip").ok();
    const rukh::Result<Texts> names = rukh::memory_statistics(environment);
    CHECK(names.ok() == gpu && (!gpu || has(names.value(), "InUse")));
    CHECK(memory.create_arena().ok() == gpu && memory.statistic("InUse").ok() == gpu && memory.summary().ok() == gpu);
    CHECK(memory.info().ok() == gpu && memory.reset_peaks().ok() == gpu && memory.empty_cache().ok() == gpu);
    CHECK(memory.record_history(10).ok() == gpu && memory.snapshot().ok() == gpu);
    CHECK(memory.fourier_plans().ok() == gpu && memory.set_fourier_plan_limit(3).ok() == gpu);
    CHECK(memory.clear_fourier_plans().ok() == gpu && memory.tensor(RUKH_ELEMENT_FLOAT, {2}).ok() == gpu);
    int released = 0;
    CHECK(!memory.tensor_over(RUKH_ELEMENT_FLOAT, {2}, nullptr, 8, [&released] { released++; }));
    CHECK(released == 1);
    const rukh::Result<rukh::ExternalMemory> imported = rukh::ExternalMemory::import(
        environment.device("cpu").value(), RUKH_EXTERNAL_OPAQUE_FD, 0, 8, [&released] { released++; });
    CHECK(imported.error().status == RUKH_ERROR_INVALID_ARGUMENT && released == 2);
    CHECK(!rukh::ExternalMemory().tensor(RUKH_ELEMENT_FLOAT, {2}));
    const rukh::Value value = rukh::Value::copy_of(std::vector<float>{1}, {1}).value();
    CHECK(!rukh::location(value).value().on_device);
}

int main(int argc, char **argv) {
    if (argc > 1) model_folder = argv[1];
    std::atomic<int> loops{0};
    {
        rukh::Environment environment = with_threads_of_its_own(loops);
        library(environment);
        options();
        facts(environment);
        artifacts(environment);
        memory(environment);
        const std::vector<float> ones(300000, 1);
        const rukh::Value a = rukh::Value::copy_of(ones, {300000}).value();
        const rukh::Session session = rukh::Session::open(environment, model_path("add")).value();
        CHECK(session.run({{"a", &a}, {"b", &a}}, {"sum"}).value()[0].data<float>().value()[299999] == 2);
    }
    CHECK(loops > 0);
    log();
    return 0;
}
