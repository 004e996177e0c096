#include <brotli/decode.h>

#include <cstdint>
#include <new>

#include "ingest/unpacker.h"

namespace watchdog::monitor {
namespace {

/// Its window has 16 MiB at most: the library refuses larger ones unless it is asked for them.
class BrotliUnpacker final : public Unpacker {
 public:
  BrotliUnpacker() : decoder_(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr)) {
    if (!decoder_) throw std::bad_alloc();
  }

 protected:
  Step step(std::string_view& bytes, char* piece, std::size_t size_max) override {
    // Unlike gzip and zstd it has one part, and bytes after that are a fault.
    if (BrotliDecoderIsFinished(decoder_.get()) != BROTLI_FALSE) return {.is_broken = true};
    const auto* in = reinterpret_cast<const std::uint8_t*>(bytes.data());
    auto* out = reinterpret_cast<std::uint8_t*>(piece);
    std::size_t in_size = bytes.size();
    std::size_t out_room = size_max;
    const auto result =
        BrotliDecoderDecompressStream(decoder_.get(), &in_size, &in, &out_room, &out, nullptr);
    bytes.remove_prefix(bytes.size() - in_size);
    return {.size = size_max - out_room,
            .is_broken = result == BROTLI_DECODER_RESULT_ERROR,
            .is_end = result == BROTLI_DECODER_RESULT_SUCCESS};
  }

 private:
  struct Free {
    void operator()(BrotliDecoderState* decoder) const { BrotliDecoderDestroyInstance(decoder); }
  };
  std::unique_ptr<BrotliDecoderState, Free> decoder_;
};

}  // namespace

std::unique_ptr<Unpacker> brotli_unpacker() {
  return std::make_unique<BrotliUnpacker>();
}

}  // namespace watchdog::monitor
