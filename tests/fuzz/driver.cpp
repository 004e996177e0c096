// Runs a fuzz target on the files of a folder and on its seeds. Then it runs the target on inputs
// made from both, for half a minute: the same WATCHDOG_SEED gives the same inputs. Without one the
// seed is fixed, so that the result depends on the code. WATCHDOG_FULL takes a fresh one. `FILE...`
// runs the target on files alone. `--write-seeds FOLDER` writes the seeds as files for libFuzzer.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz/fuzz.h"
#include "support/scenario.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)());  // NOLINT: theirs

namespace {

namespace fs = std::filesystem;

constexpr std::size_t input_bytes_max = 4096;

/// The input under way: it is kept as a file if the target ends the program.
const std::vector<char>* under_way = nullptr;
std::string kept_file;

void keep_input() {
  if (under_way == nullptr) return;
  std::ofstream file(kept_file, std::ios::binary);
  file.write(under_way->data(), static_cast<std::streamsize>(under_way->size()));
  std::fprintf(stderr, "The input is in %s\n", fs::absolute(kept_file).c_str());
  under_way = nullptr;
}

void run(const std::string& input) {
  const std::vector<char> bytes(input.begin(), input.end());  // no byte more: a sanitizer sees it
  under_way = &bytes;
  try_input({bytes.data(), bytes.size()});
  under_way = nullptr;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void mutate(std::string& input, const std::vector<std::string>& seeds, std::mt19937& random) {
  const auto below = [&](std::size_t bound) { return bound == 0 ? 0 : random() % bound; };
  const std::size_t at = below(input.size() + 1);
  const std::size_t bytes = below(input.size() - at + 1);
  switch (random() % 5) {
    case 0:
      if (at < input.size()) input[at] = static_cast<char>(random());
      break;
    case 1:
      input.erase(at, bytes);
      break;
    case 2:
      input.insert(at, seeds[below(seeds.size())]);
      break;
    case 3:
      input.insert(at, 1, static_cast<char>(random()));
      break;
    default: {
      const std::string piece = input.substr(at, bytes);
      for (auto times = random() % 16; times > 0 && input.size() < input_bytes_max; --times)
        input.insert(at, piece);
    }
  }
  input.resize(std::min(input.size(), input_bytes_max));
}

void write_seeds(const fs::path& folder) {
  fs::create_directories(folder);
  int number = 0;
  for (const auto& seed : fuzz_seeds())
    std::ofstream(folder / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
}

/// The files of a folder, in the order of their names; none if there is no such folder.
std::vector<std::string> contents_of(const fs::path& folder) {
  std::vector<fs::path> files;
  if (fs::exists(folder)) files.assign(fs::directory_iterator(folder), {});
  std::ranges::sort(files);
  std::vector<std::string> contents;
  for (const auto& file : files) contents.push_back(content_of(file));
  return contents;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> given(argv + 1, argv + argc);
  if (given.size() == 2 && given[0] == "--write-seeds") {
    write_seeds(given[1]);
    return 0;
  }
  kept_file = fs::path(argv[0]).filename().string() + "-found";
  __sanitizer_set_death_callback(keep_input);
  std::signal(SIGABRT, [](int) { keep_input(); });
  const bool one_folder = given.size() == 1 && !fs::is_regular_file(given[0]);
  if (!one_folder) {
    for (const auto& file : given) run(content_of(file));
    if (!given.empty()) return 0;
  }

  auto seeds = one_folder ? contents_of(given[0]) : std::vector<std::string>{};
  for (auto& seed : fuzz_seeds()) seeds.push_back(std::move(seed));
  seeds.emplace_back();  // random steps reach the empty input too rarely
  for (const auto& seed : seeds) run(seed);
  const bool full = std::getenv("WATCHDOG_FULL") != nullptr;
  const std::chrono::seconds seconds(full ? 300 : 30);
  const bool chosen = full || std::getenv("WATCHDOG_SEED") != nullptr;
  std::mt19937 random(chosen ? watchdog::test::random_seed() : 1);
  std::size_t inputs = 0;
  for (const auto end = std::chrono::steady_clock::now() + seconds;
       std::chrono::steady_clock::now() < end; ++inputs) {
    std::string input = seeds[random() % seeds.size()];
    for (auto steps = 1 + random() % 8; steps > 0; --steps) mutate(input, seeds, random);
    run(input);
  }
  std::printf("%zu inputs\n", inputs);
}
