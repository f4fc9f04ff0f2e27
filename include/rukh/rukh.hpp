// rukh for C++17: owners for the handles of rukh.h that can be moved but not copied, and results in place
// of statuses. What a function does is said in rukh.h.
//
//   auto environment = rukh::Environment::create().value();
//   auto session = rukh::Session::open(environment, "model.onnx").value();
//   auto input = rukh::Value::copy_of(pixels, {1, 3, 224, 224}).value();
//   std::vector<rukh::Value> outputs = session.run({{"image", &input}}, {"scores"}).value();
//   for (float score : outputs[0].data<float>().value()) ...
//
// Works with -fno-exceptions; see result.hpp. Functions given to the library (log, release, callbacks)
// must not throw.

#ifndef RUKH_HPP
#define RUKH_HPP

#include <cstdint>
#include <string_view>

#include <rukh/adapter.hpp>
#include <rukh/artifact.hpp>
#include <rukh/binding.hpp>
#include <rukh/device.hpp>
#include <rukh/environment.hpp>
#include <rukh/memory.hpp>
#include <rukh/operator.hpp>
#include <rukh/options.hpp>
#include <rukh/session.hpp>
#include <rukh/value.hpp>

namespace rukh {

/// The version of the library as text.
inline std::string_view version() noexcept { return rukh_version_string(); }
/// The same as a number: major * 1000000 + minor * 1000 + patch.
inline std::uint32_t version_number() noexcept { return rukh_version(); }
/// The version of the library's binary interface; RUKH_ABI_VERSION is the header's.
inline std::uint32_t abi_version() noexcept { return rukh_abi_version(); }

}  // namespace rukh

#endif  // RUKH_HPP
