// Classifies the 360 held-out images of handwritten digits with the trained model beside this file.
//
//     digits [MODEL [IMAGES]]
//
// Exit codes: 0 when at least 97 % are right, 1 when fewer are, 2 when something cannot be read or run.

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <rukh/rukh.hpp>

namespace {

constexpr std::size_t classes = 10;
constexpr std::size_t shown = 3;

/// 8-bit pixels from 0 (white) to 16 (black), and what each image shows.
struct Images {
  std::size_t count, height, width;
  std::vector<std::uint8_t> pixels, labels;
};

/// Three little-endian 32-bit numbers (count, height, width), the pixels, the labels.
Images read_images(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::vector<std::uint8_t> data(bytes.begin(), bytes.end());
  if (data.size() < 12) throw std::runtime_error(path + ": it cannot be read, or is cut off");

  std::array<std::size_t, 3> head{};
  for (std::size_t i = 0; i < 12; i++) head[i / 4] |= std::size_t{data[i]} << (8 * (i % 4));
  Images images{head[0], head[1], head[2], {}, {}};
  const std::size_t pixels = images.count * images.height * images.width;
  if (data.size() != 12 + pixels + images.count) throw std::runtime_error(path + ": it is cut off");
  const auto labels = data.begin() + 12 + static_cast<std::ptrdiff_t>(pixels);
  images.pixels.assign(data.begin() + 12, labels);
  images.labels.assign(labels, data.end());
  return images;
}

void draw(const Images &images, std::size_t index) {
  const std::string shades = " .:-=+*#%@";
  const std::uint8_t *pixel = images.pixels.data() + index * images.height * images.width;
  for (std::size_t y = 0; y < images.height; y++) {
    std::cout << "    ";
    for (std::size_t x = 0; x < images.width; x++) std::cout << std::string(2, shades[*pixel++ * 9 / 16]);
    std::cout << '\n';
  }
}

/// The class with the highest score, for every image.
std::vector<std::size_t> classify(const std::string &model, const Images &images) {
  const auto environment = rukh::Environment::create().value();
  const auto session = rukh::Session::open(environment, model).value();

  const std::vector<float> pixels(images.pixels.begin(), images.pixels.end());
  const rukh::Shape shape{static_cast<std::int64_t>(images.count), 1, static_cast<std::int64_t>(images.height),
                          static_cast<std::int64_t>(images.width)};
  const auto image = rukh::Value::copy_of(pixels, shape).value();
  const auto outputs = session.run({{"image", &image}}, {"scores"}).value();

  const auto scores = outputs[0].data<float>().value();
  if (scores.size != images.count * classes) throw std::runtime_error(model + ": it does not give 10 scores an image");
  std::vector<std::size_t> answers;
  for (std::size_t i = 0; i < images.count; i++) {
    const float *first = scores.begin() + i * classes;
    answers.push_back(static_cast<std::size_t>(std::max_element(first, first + classes) - first));
  }
  return answers;
}

int run(const std::string &model, const std::string &file) {
  const Images images = read_images(file);
  const std::vector<std::size_t> answers = classify(model, images);
  std::size_t right = 0;
  for (std::size_t i = 0; i < images.count; i++) {
    const bool is_right = answers[i] == images.labels[i];
    right += is_right;
    if (i < shown) {
      draw(images, i);
      std::cout << "  this is a " << answers[i] << (is_right ? "" : " (wrong)") << "\n\n";
    }
  }
  const double percent = 100.0 * static_cast<double>(right) / static_cast<double>(images.count);
  std::cout << right << " of " << images.count << " right: " << percent << " %\n";
  return percent >= 97.0 ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
  try {
    return run(argc > 1 ? argv[1] : "digits.onnx", argc > 2 ? argv[2] : "heldout.bin");
  } catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
