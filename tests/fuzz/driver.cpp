// Runs a fuzz target on inputs made from its seeds, the same ones for the same WATCHDOG_SEED, or on
// the files named.

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz/fuzz.h"
#include "support/scenario.h"

#ifndef FUZZ_ROUNDS
#define FUZZ_ROUNDS 300000
#endif

namespace {

constexpr std::size_t input_bytes_max = 4096;

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
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

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    run({std::istreambuf_iterator<char>(file), {}});
  }
  if (argc > 1) return 0;

  std::mt19937 random(watchdog::test::random_seed());
  const auto seeds = fuzz_seeds();
  for (const auto& seed : seeds) run(seed);
  for (int rounds = watchdog::test::repetitions(FUZZ_ROUNDS); rounds > 0; --rounds) {
    std::string input = seeds[random() % seeds.size()];
    for (auto steps = 1 + random() % 8; steps > 0; --steps) mutate(input, seeds, random);
    run(input);
  }
}
