// For a program without libzstd.
#include "ingest/unpacker.h"

namespace watchdog::monitor {

std::unique_ptr<Unpacker> zstd_unpacker() {
  return nullptr;
}

}  // namespace watchdog::monitor
