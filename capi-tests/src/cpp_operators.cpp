// Operators as C++ classes: what operator.hpp makes of them.

#include "check.h"

#include <rukh/rukh.hpp>

#include <atomic>

static std::atomic<int> alive{0}, doubled{0};

struct Scale {
    explicit Scale(const rukh::NodeInfo &node) : factor(node.attribute<float>("factor").value()) {
        CHECK(node.has_input(0) && !node.has_input(1) && node.has_output(0));
        CHECK(node.input_element_type(0).value() == RUKH_ELEMENT_FLOAT);
        alive++;
    }
    ~Scale() { alive--; }
    static rukh::Result<void> shape(rukh::NodeInfo &node) { return node.set_output_shape_of(0, 0); }
    rukh::Result<void> compute(rukh::KernelContext &context) {
        rukh::BorrowedValue x = context.input(0).value();
        rukh::BorrowedValue y = context.output(0, x->shape().value()).value();
        auto from = x->data<float>().value();
        auto to = y->data_mut<float>().value();
        if (from[0] > 1e6f) return rukh::Error{RUKH_ERROR_INVALID_INPUT, "too large"};
        return context.parallel_for(from.size, [&](std::size_t i) { to[i] = from[i] * factor; });
    }
    float factor;
};

/* Without a shape function. */
struct Double {
    explicit Double(const rukh::NodeInfo &) {}
    rukh::Result<void> compute(rukh::KernelContext &context) {
        doubled++;
        rukh::BorrowedValue x = context.input(0).value();
        rukh::Value y = rukh::Value::zeros(RUKH_ELEMENT_FLOAT, x->shape().value()).value();
        for (std::size_t i = 0; i < x->data<float>().value().size; i++)
            y.data_mut<float>().value()[i] = 2 * x->data<float>().value()[i];
        return context.set_output(0, y);
    }
};

#if RUKH_HAS_EXCEPTIONS
struct Throws {
    explicit Throws(const rukh::NodeInfo &node) { node.attribute<std::int64_t>("none").value(); }
    rukh::Result<void> compute(rukh::KernelContext &) { return {}; }
};
#endif

template <class Kernel>
static rukh::SessionOptions options_with() {
    rukh::Operator op = rukh::Operator::create<Kernel>("test.ops", "Scale").value();
    op.add_type_variable("T", {RUKH_ELEMENT_FLOAT}).value();
    op.add_input("x", "T").value();
    op.add_output("y", "T").value();
    op.add_attribute("factor", 1.0f).value();
    rukh::SessionOptions options = rukh::SessionOptions::create().value();
    options.add_operator(op).value();
    CHECK(options.add_operator(op).error().status == RUKH_ERROR_INVALID_ARGUMENT);
    return options;
}

template <class Kernel>
static void run(rukh::Environment &environment, float first, float second) {
    rukh::SessionOptions options = options_with<Kernel>();
    rukh::Session session = rukh::Session::open(environment, model_path("operators"), options).value();
    rukh::Value x = rukh::Value::copy_of(std::vector<float>{1, 1}, {1, 2}).value();
    std::vector<rukh::Value> y = session.run({{"x", &x}}, {"y"}).value();
    CHECK(y[0].data<float>().value()[0] == first && y[0].data<float>().value()[1] == second);
    if (std::is_same_v<Kernel, Scale>) {
        CHECK(alive == 2);
        x = rukh::Value::copy_of(std::vector<float>{1e7f, 1}, {1, 2}).value();
        rukh::Error error = session.run({{"x", &x}}, {"y"}).error();
        CHECK(error.status == RUKH_ERROR_INVALID_INPUT && error.message.find("Scale): too large") != std::string::npos);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) model_folder = argv[1];
    rukh::Environment environment = rukh::Environment::create().value();
    run<Scale>(environment, 16, 20);
    CHECK(alive == 0);
    run<Double>(environment, 26, 40);
#if RUKH_HAS_EXCEPTIONS
    rukh::SessionOptions options = options_with<Throws>();
    rukh::Error error = rukh::Session::open(environment, model_path("operators"), options).error();
    CHECK(error.status == RUKH_ERROR_NOT_FOUND && error.message.find("\"none\" is not there") != std::string::npos);
#endif
    rukh::Operator op = rukh::Operator::create<Double>("test.ops", "Scale", 2).value();
    op.add_input("x", "float", RUKH_ARITY_VARIADIC_SOME).value();
    op.add_output("y", "float").value();
    op.declare_attribute("factor", RUKH_ATTRIBUTE_FLOAT).value();
    op.set_pure().value();
    op.set_capturable().value();
    environment.add_operator(op).value();
    doubled = 0;
    CHECK(rukh::Session::open(environment, model_path("operators")).ok());
    CHECK(doubled == 1); /* of constants */
    op = rukh::Operator::create<Double>("test.ops", "Scale").value();
    op.set_pure(false).value();
    op.set_capturable(false).value();
    return 0;
}
