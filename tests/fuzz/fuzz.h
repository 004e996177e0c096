/// \file
/// What a fuzz target gives and asks. Each is built twice: with driver.cpp as an ordinary test, and
/// with libFuzzer where the build is configured with WATCHDOG_LIBFUZZER.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

/// Ends the program unless what is asked for holds.
#define FUZZ_REQUIRE(...) \
  ((__VA_ARGS__)          \
       ? void()           \
       : (std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__), std::abort()))

/// Looks at one input. Returns 0.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name for it
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Inputs that the driver begins with.
std::vector<std::string> fuzz_seeds();
