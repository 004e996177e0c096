#include <zstd.h>

#include <new>

#include "ingest/unpacker.h"

namespace watchdog::monitor {
namespace {

/// Frames that need a larger window are not understood. The window of a frame in one segment is its
/// whole content, and a request that is read has up to 16 MiB.
constexpr int window_log_max = 25;

class ZstdUnpacker final : public Unpacker {
 public:
  ZstdUnpacker() : stream_(ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, window_log_max);
  }

 protected:
  Step step(std::string_view& bytes, char* piece, std::size_t size_max) override {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    ZSTD_outBuffer out{piece, size_max, 0};
    const auto left = ZSTD_decompressStream(stream_.get(), &out, &in);
    bytes.remove_prefix(in.pos);
    return {.size = out.pos, .is_broken = ZSTD_isError(left) != 0, .is_end = left == 0};
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_;
};

}  // namespace

std::unique_ptr<Unpacker> zstd_unpacker() {
  return std::make_unique<ZstdUnpacker>();
}

}  // namespace watchdog::monitor
