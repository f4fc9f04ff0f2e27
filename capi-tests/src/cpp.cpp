// rukh.hpp: owners that move, results with and without exceptions.

#include <rukh/rukh.hpp>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <type_traits>

#include "check.h"

static_assert(!std::is_copy_constructible_v<rukh::Session> && !std::is_copy_assignable_v<rukh::Session>);
static_assert(std::is_nothrow_move_constructible_v<rukh::Value> && std::is_nothrow_move_assignable_v<rukh::Value>);
static_assert(sizeof(rukh::Value) == sizeof(rukh_value *));

static void values() {
    rukh::Value a = rukh::Value::copy_of(std::vector<float>{1, 2, 3, 4}, {2, 2}).value();
    rukh::Value b = std::move(a);
    CHECK(!a && b);
    CHECK((b.shape().value() == rukh::Shape{2, 2}));
    CHECK(b.type_text().value() == "tensor(float)");
    CHECK(b.data<float>().value()[3] == 4);
    CHECK(!b.data<double>().ok());
    b.data_mut<float>().value()[0] = 9;
    rukh::Value shared = b.share().value();
    b = rukh::Value();
    CHECK(shared.data<float>().value().begin()[0] == 9);
    CHECK((shared.reshape({4}).value().shape().value() == rukh::Shape{4}));

    int released = 0;
    double memory[] = {1, 2};
    {
        rukh::Value over = rukh::Value::over(memory, 2, {2}, [&] { released++; }).value();
        CHECK(over.data<double>().value().data == memory);
        CHECK(released == 0);
    }
    CHECK(released == 1);
    CHECK(!rukh::Value::over(memory, 2, {3}, [&] { released++; }).ok());
    CHECK(released == 2);

    rukh::Value texts = rukh::Value::strings({"one", std::string("t\0o", 3)}, {2}).value();
    CHECK(texts.string(1).value() == std::string("t\0o", 3));
    texts.set_string(0, "eins").value();
    CHECK(texts.string(0).value() == "eins");
    rukh::Result<std::string> missing = texts.string(7);
    CHECK(!missing && missing.error().status == RUKH_ERROR_INVALID_ARGUMENT);

    std::vector<rukh::Value> items;
    items.push_back(std::move(shared));
    rukh::Value sequence = rukh::Value::sequence(items).value();
    CHECK(sequence.item_count().value() == 1 && sequence.kind().value() == RUKH_KIND_SEQUENCE);
    rukh::Value keys = rukh::Value::copy_of(std::vector<std::int64_t>{7}, {1}).value();
    rukh::Value map = rukh::Value::map(keys, items).value();
    CHECK(map.map_keys().value().data<std::int64_t>().value()[0] == 7);
    CHECK(rukh::Value::optional(map).value().item(0).value().type_text().value() == map.type_text().value());
    CHECK(rukh::Value::nothing(RUKH_ELEMENT_FLOAT).value().item_count().value() == 0);
    CHECK(rukh::Value::from_dlpack(items[0].to_dlpack().value()).value().data<float>().value()[0] == 9);
}

static void sessions() {
    int messages = 0;
    rukh::EnvironmentOptions settings = rukh::EnvironmentOptions::create().value();
    settings.set("threads", "2").value();
    settings.set_log(RUKH_LOG_INFO, [&](rukh_log_level, std::string_view text) { messages += !text.empty(); }).value();
    rukh::Environment environment = rukh::Environment::create(settings).value();
    CHECK(environment.devices().value().back().provider == "cpu");

    rukh::SessionOptions options = rukh::SessionOptions::create().value();
    options.set("profiling", "1").value();
    options.add_provider("cpu").value();
    CHECK(options.option("profiling").value() == "1");
    rukh::Session session = rukh::Session::open(environment, model_path("add"), options).value();
    CHECK(messages > 0);
    std::vector<rukh::Port> inputs = session.inputs().value();
    CHECK(inputs.size() == 2 && inputs[1].name == "b" && inputs[0].rank_known && inputs[0].shape[0] == -1);
    CHECK(session.outputs().value()[1].type == "tensor(float)[n]");

    rukh::Value a = rukh::Value::copy_of(std::vector<float>{1, 2}, {2}).value();
    std::vector<rukh::Value> outputs = session.run({{"a", &a}, {"b", &a}}, {"product", "sum"}).value();
    CHECK(outputs[0].data<float>().value()[1] == 4 && outputs[1].data<float>().value()[0] == 2);
    CHECK(session.run({{"a", &a}}, {"sum"}).error().status == RUKH_ERROR_INVALID_INPUT);
    CHECK(!session.profile().value().empty());
    CHECK(!session.tuning_results() && !session.add_tuning_results("rukh tuning results 1\n"));

    std::mutex mutex;
    std::condition_variable changed;
    float last = 0;
    session.run_async({{"a", &a}, {"b", &a}}, {"sum"}, [&](rukh::Result<std::vector<rukh::Value>> result) {
        std::lock_guard<std::mutex> lock(mutex);
        last = result.value()[0].data<float>().value()[1];
        changed.notify_one();
    }).value();
    {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return last != 0; });
        CHECK(last == 4);
    }
    const rukh::Completion started = session.start({{"a", &a}, {"b", &a}}, {"product", "sum"}).value();
    CHECK(started.outputs().value()[0].data<float>().value()[1] == 4 && started.outputs().value().size() == 2);
    CHECK(started.is_done().value() && started.event().value() == 0);
    CHECK(session.start({{"a", &a}}, {"sum"}).value().outputs().error().status == RUKH_ERROR_INVALID_INPUT);

    rukh::IoBinding binding = rukh::IoBinding::create(session).value();
    binding.bind_input("a", a).value();
    binding.bind_input("b", a).value();
    binding.bind_output("sum").value();
    rukh::RunOptions run = rukh::RunOptions::create().value();
    binding.run(run).value();
    CHECK(binding.output("sum").value().data<float>().value()[0] == 2);
    run.cancel().value();
    CHECK(binding.run(run).error().status == RUKH_ERROR_CANCELLED);

    rukh::Result<rukh::Session> none = rukh::Session::open(environment, "/nowhere.onnx");
    CHECK(!none && std::string(none.error().name()) == "RUKH_ERROR_NOT_FOUND");
#if RUKH_HAS_EXCEPTIONS
    try {
        rukh::Session::open(environment, "/nowhere.onnx").value();
        CHECK(false);
    } catch (const rukh::Exception &e) {
        CHECK(e.status() == RUKH_ERROR_NOT_FOUND);
    }
#endif
}

static void adapters() {
    rukh::Value a = rukh::Value::copy_of(std::vector<float>(8, 1), {4, 2}).value();
    rukh::Value b = rukh::Value::copy_of(std::vector<float>(6, 0.5f), {2, 3}).value();
    rukh::Adapter made = rukh::Adapter::create({{"lora_a", &a}, {"lora_b", &b}}, 5, -2).value();
    CHECK(made.parameter_count().value() == 2 && made.parameter_name(1).value() == "lora_b");
    CHECK((made.parameter_value(0).value().shape().value() == rukh::Shape{4, 2}));
    CHECK(made.versions().value().format == 1 && made.versions().value().model == -2);
    CHECK(made.parameter_value(2).error().status == RUKH_ERROR_INVALID_ARGUMENT);

    const std::string path = "adapters-of-cpp.onnx_adapter";
    made.save(path).value();
    rukh::Adapter opened = rukh::Adapter::open(path).value();
    CHECK(std::remove(path.c_str()) == 0);
    CHECK(opened.versions().value().adapter == 5);
    int released = 0;
    CHECK(!rukh::Adapter::from_buffer("no adapter", 10, [&] { released++; }).ok() && released == 1);
    CHECK(rukh::Adapter::open(path).error().status == RUKH_ERROR_NOT_FOUND);

    rukh::Environment environment = rukh::Environment::create().value();
    rukh::Session session = rukh::Session::open(environment, model_path("adapted")).value();
    rukh::RunOptions run = rukh::RunOptions::create().value();
    run.add_adapter(opened).value();
    rukh::SessionOptions options = rukh::SessionOptions::create().value();
    options.add_adapter(made).value();
    made = rukh::Adapter();
    opened = rukh::Adapter();
    rukh::Value x = rukh::Value::copy_of(std::vector<float>(4, 1), {1, 4}).value();
    CHECK(session.run({{"x", &x}}, {"y"}).value()[0].data<float>().value()[0] == 18);
    CHECK(session.run({{"x", &x}}, {"y"}, run).value()[0].data<float>().value()[0] == 22);
    session = rukh::Session::open(environment, model_path("adapted"), options).value();
    CHECK(session.run({{"x", &x}}, {"y"}).value()[0].data<float>().value()[0] == 22);
}

int main(int argc, char **argv) {
    if (argc > 1) model_folder = argv[1];
    values();
    sessions();
    adapters();
    return 0;
}
