/// \file
/// What a fuzz target gives and asks. Each is built twice: with driver.cpp as an ordinary test, and
/// with entry.cpp for libFuzzer where the build is configured with WATCHDOG_LIBFUZZER.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

/// Ends the program unless what is asked for holds.
#define FUZZ_REQUIRE(...) \
  ((__VA_ARGS__)          \
       ? void()           \
       : (std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__), std::abort()))

/// Looks at one input.
void try_input(std::string_view input);

/// Inputs that the driver begins with.
std::vector<std::string> fuzz_seeds();

/// Gives `feed` the text whole, then byte by byte, then in pieces of random length, until `feed`
/// says false. `begin` is called before each of the three, and `end` after each; what `end` returns
/// must be the same for all.
template <class Begin, class Feed, class End>
void same_in_pieces(std::string_view text, Begin begin, Feed feed, End end) {
  std::mt19937 random(static_cast<unsigned>(text.size()));
  const auto outcome = [&](const auto& next_bytes) {
    begin();
    for (auto rest = text; !rest.empty();) {
      const auto piece = rest.substr(0, next_bytes());
      rest.remove_prefix(piece.size());
      if (!feed(piece)) break;
    }
    return end();
  };
  const std::string whole = outcome([&] { return text.size(); });
  for (const std::string& cut :
       {outcome([] { return std::size_t{1}; }), outcome([&] { return 1 + random() % 40; })}) {
    if (cut == whole) continue;
    std::fprintf(stderr, "whole:\n%s\nin pieces:\n%s\n", whole.c_str(), cut.c_str());
    std::abort();
  }
}
