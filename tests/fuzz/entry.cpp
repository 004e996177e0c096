// Where libFuzzer comes in.

#include "fuzz/fuzz.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name for it
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try_input({reinterpret_cast<const char*>(data), size});
  return 0;
}
