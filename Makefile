# evalboard: trainer, evaluator, eventlog, checkpoint, dataset. `make` builds, `make test` tests, `make demo` shows.
# V=1 shows commands; SAN=address,undefined or SAN=thread builds apart with sanitizers; MPI=0, SQLITE=0, ... leave out a part;
# PEERS=all: tests and benchmarks with TensorFlow, PyTorch and safetensors. CC, CFLAGS, LDFLAGS, PREFIX, LIBDIR, DESTDIR are yours.
# CROSS=aarch64-linux-gnu- builds for another processor, with the compiler, binutils and pkg-config of that prefix.

CROSS   ?=
ifneq ($(CROSS),)
CC      := $(CROSS)gcc
AR      := $(CROSS)ar
OBJCOPY := $(CROSS)objcopy
CONFIG  := $(or $(shell command -v $(CROSS)pkg-config),env PKG_CONFIG_LIBDIR=/usr/lib/$(CROSS:%-=%)/pkgconfig:/usr/share/pkgconfig pkg-config)
else
CONFIG  := pkg-config
endif
CC      ?= cc
OBJCOPY ?= objcopy
CFLAGS  ?= -O2 -g
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
PEERS   ?=
comma   := ,
B       := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(CROSS:%-=-%)
Q       := $(if $(V),,@)

# As many jobs as there are cores, unless -j says how many. Several goals, as in `make clean all`, go one after the other.
ifeq ($(MAKELEVEL)$(word 2,$(MAKECMDGOALS)),0)
MAKEFLAGS += -j$(shell nproc)
endif

# ---- what this machine has -----------------------------------------------------------------------------------------
exists   = $(shell $(CONFIG) --exists $1 2>/dev/null && echo 1 || echo 0)
includes = $(shell printf '\#include <$1>\n' | $(CC) -E - >/dev/null 2>&1 && echo 1 || echo 0)
command  = $(shell command -v $1 >/dev/null && echo 1 || echo 0)
# A part is 1 where its library was found; MPI=0 and so on build as if it was not.
# Open MPI, else MPICH, as pkg-config knows them; MPI_MODULE=mpich where both are there; or by their compiler: MPICC=mpicc.
MPICC      ?=
MPI_MODULE ?= $(firstword $(foreach m,ompi-c mpich,$(if $(filter 1,$(call exists,$m)),$m)))
MPI_MODULE := $(MPI_MODULE)
MPI_SHOWN  := $(if $(MPICC),$(shell $(MPICC) -show))
MPI      := $(if $(MPICC)$(MPI_MODULE),1,0)
OPENBLAS := $(call exists,openblas)
JPEG     := $(call exists,libjpeg)
PROTOBUF := $(if $(filter 111,$(call exists,libprotobuf-c)$(call command,protoc)$(call command,protoc-gen-c)),1,0)
JANSSON  := $(call exists,jansson)
INOTIFY  := $(call includes,inotifytools/inotifytools.h)
ONEDNN   := $(call includes,dnnl.h)
SQLITE   := $(call exists,sqlite3)
ZSTD     := $(call exists,libzstd)
DEFLATE  := $(call exists,libdeflate)
NCURSES  := $(call exists,ncursesw)
NGHTTP2  := $(call exists,libnghttp2)
PYTHON   := $(call command,python3)
PARTS    := MPI OPENBLAS JPEG PROTOBUF JANSSON INOTIFY ONEDNN SQLITE ZSTD DEFLATE NCURSES NGHTTP2 PYTHON
LEFT_OUT := $(strip $(foreach p,$(PARTS),$(if $(filter 0,$($p)),$p)))
WITHOUT_MPI      = Open MPI (libopenmpi-dev, openmpi-bin) or MPICH (libmpich-dev, mpich): no trainer, no libeventlog_mpi
WITHOUT_OPENBLAS = OpenBLAS (libopenblas-dev): no trainer, no evaluator, no dataset
WITHOUT_JPEG     = libjpeg-turbo (libjpeg62-turbo-dev): no trainer, no evaluator, no dataset
WITHOUT_PROTOBUF = protobuf-c (libprotobuf-c-dev, protobuf-c-compiler): no trainer, no evaluator, no dataset, no checkpoint
WITHOUT_JANSSON  = jansson (libjansson-dev): no trainer, no evaluator, no dataset, no checkpoint
WITHOUT_INOTIFY  = libinotifytools (libinotifytools0-dev): evaluator looks for checkpoints every second, by --poll-interval
WITHOUT_ONEDNN   = oneDNN (libdnnl-dev): convolutions by OpenBLAS, which is slower
WITHOUT_SQLITE   = SQLite (libsqlite3-dev): no eventlog export --format=sqlite
WITHOUT_ZSTD     = zstd (libzstd-dev): no reading of event files compressed with zstd
WITHOUT_DEFLATE  = libdeflate (libdeflate-dev): images are packed by zlib, which is slower
WITHOUT_NCURSES  = ncurses (libncurses-dev): no eventlog watch
WITHOUT_NGHTTP2  = nghttp2 (libnghttp2-dev): no eventlog-server
WITHOUT_PYTHON   = Python (python3): no man pages, no completions
# 1 where all of these parts are there.
with     = $(if $(filter 0,$(foreach p,$1,$($p))),,1)
CHECKPOINTS := $(call with,PROTOBUF JANSSON)
TRAINER     := $(and $(CHECKPOINTS),$(call with,OPENBLAS JPEG MPI))
EVALUATOR   := $(and $(CHECKPOINTS),$(call with,OPENBLAS JPEG))

# Debian's packages, by what they are for. `make test` and its like (INSTALLS) install those that are missing, then make
# starts again and sees them; their rules are those between ifneq ($(MISSING),) and endif.
# Few, as `make demo` is the first command of all: no C++, of OpenBLAS one variant. MPI is 60 to 80 of them, without MPI=0.
PACKAGES_mpi   = $(if $(and $(filter command,$(origin MPI)),$(filter 0,$(MPI))),,libopenmpi-dev openmpi-bin)
PACKAGES_build = gcc libc6-dev make pkg-config zlib1g-dev libpng-dev libjpeg62-turbo-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler \
                 libjansson-dev libopenblas-pthread-dev libdnnl-dev libinotifytools0-dev $(PACKAGES_mpi) \
                 libsqlite3-dev libncurses-dev libzstd-dev libdeflate-dev libnghttp2-dev python3
PACKAGES_deps  = $(PACKAGES_build)
PACKAGES_demo  = $(PACKAGES_build) python3-venv dataset-fashion-mnist
PACKAGES_bench = $(PACKAGES_demo) g++ libsnappy-dev iproute2
PACKAGES_soak  = $(PACKAGES_demo)
PACKAGES_tables = $(PACKAGES_demo)
PACKAGES_pages = chromium chromium-driver
PACKAGES_gallery = $(PACKAGES_build) python3-venv $(PACKAGES_pages)
PACKAGES_faults = $(PACKAGES_build)
PACKAGES_kills = $(PACKAGES_build)
PACKAGES_rank-faults = $(PACKAGES_build) iproute2
PACKAGES_same-bits = $(PACKAGES_build) iproute2 dataset-fashion-mnist
PACKAGES_fuzz  = $(PACKAGES_build) clang libclang-rt-dev
PACKAGES_fuzz-structured = $(PACKAGES_fuzz)
PACKAGES_test  = $(PACKAGES_demo) g++ dpkg-dev librsvg2-2 libcmocka-dev libsnappy-dev iproute2 systemd fish groff-base mandoc gfortran git cmake zstd $(PACKAGES_pages)
PACKAGES_check = $(PACKAGES_test)
PACKAGES_coverage = $(PACKAGES_test)
INSTALLS := $(filter deps test check coverage demo bench soak tables gallery faults kills rank-faults same-bits fuzz fuzz-structured,$(MAKECMDGOALS))
PACKAGES := $(sort $(foreach goal,$(INSTALLS),$(PACKAGES_$(goal))))
MISSING  := $(if $(INSTALLED),,$(if $(INSTALLS),$(shell sh tests/install_packages.sh --missing $(PACKAGES))))
ifeq ($(MISSING)$(call exists,zlib libpng),0)
ifneq ($(filter-out deps clean dist help lint format,$(or $(MAKECMDGOALS),all)),)
$(error $(CONFIG), zlib or libpng not found; on Debian 'make deps' installs what building needs)
endif
endif
ifeq ($(MISSING)$(PYTHON),0)
ifneq ($(filter compdb documents format lint reproducible wheel,$(MAKECMDGOALS)),)
$(error python3 not found; on Debian: apt-get install python3)
endif
endif

WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wconversion -Wno-sign-conversion \
           -Wpointer-arith -Wcast-qual -Wwrite-strings $(if $(or $(WERROR),$(CI)),-Werror)
OURS     = -std=c11 -D_GNU_SOURCE -I. -I$(B)/generated $(WARNINGS) -ffp-contract=off -pthread \
           $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=undefined -fno-omit-frame-pointer) $(NO_PATHS)
# As Debian builds its packages (hardening=+all; its compilers make position-independent programs), unless CFLAGS are yours.
HARDENED := $(if $(or $(SAN),$(filter-out file,$(origin CFLAGS))),,yes)
OURS    += $(if $(HARDENED),-fstack-protector-strong -D_FORTIFY_SOURCE=2 -Werror=format-security)
# Where the builder of a package says so, the same bytes in whatever folder: none of its names in what debuggers read.
NO_PATHS = $(if $(SOURCE_DATE_EPOCH),-ffile-prefix-map=$(CURDIR)=.)
LINK     = $(CC) $(CFLAGS) $(LDFLAGS) -pthread $(if $(SAN),-fsanitize=$(SAN)) $(if $(HARDENED),-Wl$(comma)-z$(comma)relro -Wl$(comma)-z$(comma)now)

# ---- sources: a folder is a library; main.c and tool/ are programs -------------------------------------------------
folder    = $(sort $(wildcard $(addsuffix /*.c,$1)))
objects   = $(patsubst %.c,$(B)/%.o,$1)
BASE_C    := $(call folder,base base/program)
EVENTLOG_C := $(call folder,eventlog $(addprefix eventlog/,format write write/kinds read check rewrite))
TOOL_C    := $(filter-out %_screen_$(if $(call with,NCURSES),without_,)ncurses.c,\
             $(call folder,eventlog/tool $(addprefix eventlog/tool/,picture export report watch rewrite)))
SERVER_C  := $(if $(call with,NGHTTP2),$(filter-out eventlog/server/main.c,$(call folder,eventlog/server $(addprefix eventlog/server/,grpc store))))
EVENTLOG_MPI_C := $(call folder,eventlog_mpi)
CHECKPOINT_C := $(call folder,checkpoint checkpoint/directory)
CHECKPOINT_TOOL_C := $(call folder,checkpoint/tool)
DATASET_C := $(call folder,dataset dataset/captions dataset/stream)
DATASET_TOOL_C := $(call folder,dataset/tool)
MODEL_C   := $(filter-out $(if $(filter 1,$(ONEDNN)),,%_onednn.c),$(call folder,model $(addprefix model/,file kernels layers models)))
TRAINER_C := $(filter-out trainer/main.c,$(call folder,trainer $(addprefix trainer/,collective compare launch optimizers \
               plan server strategies timing)))
TRAINER_TOOL_C := $(call folder,trainer/tool)
EVALUATOR_C := $(filter-out evaluator/main.c evaluator/watch/watch_$(if $(call with,INOTIFY),without_,)inotify.c,\
               $(call folder,evaluator $(addprefix evaluator/,files score score/metrics record watch)))
EVALUATOR_TOOL_C := $(call folder,evaluator/tool)
PROTO     := $(sort $(wildcard proto/*.proto))
GENERATED := $(patsubst %.proto,$(B)/generated/%.pb-c.c,$(PROTO))

lib       = $(B)/lib/lib$1.a
VERSION   := $(shell sed -n 's/^.define EVALBOARD_VERSION "\(.*\)"$$/\1/p' base/version.h)
# What is installed for others: build/lib/ holds what our own programs link, which shows all its names.
LIBRARIES := libeventlog $(if $(call with,MPI),libeventlog_mpi)
PRODUCT   := $(foreach l,$(LIBRARIES),$(addprefix $(B)/product/$l,.a .so.$(VERSION) .so.0 .so)) $(B)/product/eventlog.h
PROGRAMS  := $(addprefix $(B)/bin/,$(if $(TRAINER),trainer) $(if $(EVALUATOR),evaluator dataset) eventlog $(if $(call with,NGHTTP2),eventlog-server) \
             $(if $(CHECKPOINTS),checkpoint))

all: $(PROGRAMS) $(if $(SAN),,$(PRODUCT))
	@$(if $(LEFT_OUT),printf '%s\n' "Not found on this machine (in brackets: Debian's packages, which 'make deps' installs):" \
	    $(foreach p,$(LEFT_OUT),"  $(WITHOUT_$p)"),:)

$(call lib,base):       $(call objects,$(BASE_C))
$(call lib,proto):      $(GENERATED:.c=.o)
$(call lib,eventlog):   $(call objects,$(EVENTLOG_C))
$(call lib,eventlog-server): $(call objects,$(SERVER_C))
$(call lib,eventlog_mpi): $(call objects,$(EVENTLOG_MPI_C))
$(call lib,checkpoint): $(call objects,$(CHECKPOINT_C))
$(call lib,dataset):    $(call objects,$(DATASET_C))
$(call lib,model):      $(call objects,$(MODEL_C))
$(call lib,trainer):    $(call objects,$(TRAINER_C))
$(call lib,evaluator):  $(call objects,$(EVALUATOR_C))
# The same model code with real = double and plain loops for what the libraries do: gradients are checked on it.
DOUBLE_C  := $(filter-out %_onednn.c,$(MODEL_C))
$(call lib,model-double): $(patsubst %.c,$(B)/double/%.o,$(DOUBLE_C))

# OpenBLAS and oneDNN are loaded when a network is made (base/late_library.h), under the names that linking would note.
MATH_LIBS = -lm
soname    = $(or $(shell objdump -p "$$($(CC) -print-file-name=lib$1.so 2>/dev/null)" 2>/dev/null | sed -n 's/^ *SONAME *//p'),lib$1.so)
LATE     := -DOPENBLAS_SONAME='"$(call soname,openblas)"' $(if $(filter 1,$(ONEDNN)),-DONEDNN_SONAME='"$(call soname,dnnl)"')
MPI_LIBS  = $(if $(MPICC),$(filter -L% -l% -Wl$(comma)%,$(MPI_SHOWN)),$(shell $(CONFIG) --libs $(MPI_MODULE)))
# What each part links, itself first: the include table of docs/architecture.md in the linker's words.
NEEDS_base       = $(call lib,base)
NEEDS_eventlog   = $(call lib,eventlog) $(NEEDS_base)
NEEDS_eventlog/tool = $(call lib,eventlog-tool) $(NEEDS_eventlog)
NEEDS_eventlog/server = $(call lib,eventlog-server) $(NEEDS_eventlog)
NEEDS_checkpoint = $(call lib,checkpoint) $(call lib,proto) $(NEEDS_base)
NEEDS_dataset    = $(call lib,dataset) $(NEEDS_checkpoint)
NEEDS_dataset/tool = $(call lib,dataset) $(call lib,checkpoint) $(call lib,proto) $(NEEDS_model)
NEEDS_model      = $(call lib,model) $(NEEDS_base)
NEEDS_trainer    = $(call lib,trainer) $(call lib,eventlog) $(call lib,dataset) $(call lib,checkpoint) $(call lib,proto) $(NEEDS_model)
NEEDS_evaluator  = $(call lib,evaluator) $(call lib,eventlog) $(call lib,dataset) $(call lib,checkpoint) $(call lib,proto) $(NEEDS_model)
SYSTEM_base       = -lm -ldl # dlopen(), before glibc 2.34
ZSTD_MODULE       = $(if $(filter 1,$(ZSTD)),libzstd)
DEFLATE_MODULE    = $(if $(filter 1,$(DEFLATE)),libdeflate)
SYSTEM_eventlog   = $(shell $(CONFIG) --libs zlib $(ZSTD_MODULE) $(DEFLATE_MODULE)) -lm
SYSTEM_eventlog/tool = $(SYSTEM_eventlog) $(SQLITE_LIBS) $(NCURSES_LIBS)
SYSTEM_eventlog/server = $(SYSTEM_eventlog) $(NGHTTP2_LIBS)
STATIC_eventlog   = $(shell $(CONFIG) --static --libs zlib $(ZSTD_MODULE) $(DEFLATE_MODULE)) -lm
STATIC_eventlog/tool = $(STATIC_eventlog) $(shell $(CONFIG) --static --libs $(if $(filter 1,$(SQLITE)),sqlite3) $(if $(call with,NCURSES),ncursesw) zlib)
SQLITE_LIBS       = $(if $(filter 1,$(SQLITE)),$(shell $(CONFIG) --libs sqlite3))
NCURSES_LIBS      = $(if $(call with,NCURSES),$(shell $(CONFIG) --libs ncursesw))
NGHTTP2_LIBS      = $(if $(call with,NGHTTP2),$(shell $(CONFIG) --libs libnghttp2))
SYSTEM_checkpoint = $(shell $(CONFIG) --libs libprotobuf-c jansson) -lm
SYSTEM_dataset    = $(shell $(CONFIG) --libs zlib libpng libjpeg jansson libprotobuf-c) -lm
SYSTEM_model      = $(MATH_LIBS)
SYSTEM_trainer    = $(shell $(CONFIG) --libs zlib $(ZSTD_MODULE) $(DEFLATE_MODULE)) $(SYSTEM_checkpoint) $(SYSTEM_dataset) $(MATH_LIBS) $(MPI_LIBS)
INOTIFY_LIBS      = $(if $(call with,INOTIFY),-linotifytools)
SYSTEM_evaluator  = $(SYSTEM_eventlog) $(SYSTEM_checkpoint) $(SYSTEM_dataset) $(MATH_LIBS) $(INOTIFY_LIBS)

$(B)/bin/trainer:   $(B)/trainer/main.o $(call objects,$(TRAINER_TOOL_C)) $(NEEDS_trainer)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(SYSTEM_trainer)
$(B)/bin/evaluator: $(B)/evaluator/main.o $(call objects,$(EVALUATOR_TOOL_C)) $(NEEDS_evaluator)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(SYSTEM_evaluator)
$(B)/bin/dataset:   $(call objects,$(DATASET_TOOL_C)) $(NEEDS_dataset/tool)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(SYSTEM_dataset)
$(B)/bin/eventlog:  $(call objects,$(TOOL_C)) $(NEEDS_eventlog)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(SYSTEM_eventlog/tool)
$(B)/bin/eventlog-server: $(B)/eventlog/server/main.o $(NEEDS_eventlog/server)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(SYSTEM_eventlog/server)
$(B)/bin/checkpoint: $(call objects,$(CHECKPOINT_TOOL_C)) $(NEEDS_checkpoint)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(SYSTEM_checkpoint)

# ---- libeventlog for others ----------------------------------------------------------------------------------------
# Only eventlog.h's functions are seen: what is hidden in the shared library is made local in the static one, so that it
# cannot meet a name of the user's. Base is taken in as far as it is needed.
ARCHIVES = -Wl,--whole-archive $(call lib,eventlog) -Wl,--no-whole-archive $(NEEDS_base)
SHARE    = $(LINK) -shared -Wl,-soname,$(@F:.$(VERSION)=.0) -Wl,--version-script=$(filter %.map,$^) \
           $(if $(SAN),,-Wl,-z$(comma)defs) -Wl,--gc-sections -o $@
# Users have one header: the second half in its place, without what makes a header of it.
$(B)/product/eventlog.h: eventlog/eventlog.h eventlog/eventlog_reader.h
	@mkdir -p $(@D)
	$(Q)sed -e '1,/^$$/d' -e '$$d' $(word 2,$^) | sed -e '/^#include "eventlog/{r /dev/stdin' -e 'd}' $< | cat -s >$@
$(B)/product/libeventlog.so.$(VERSION): $(NEEDS_eventlog) eventlog/libeventlog.map
	$(call say,LINK)
	$(Q)$(SHARE) $(ARCHIVES) $(SYSTEM_eventlog)
$(B)/product/libeventlog_mpi.so.$(VERSION): $(call objects,$(EVENTLOG_MPI_C)) $(B)/product/libeventlog.so \
    eventlog_mpi/libeventlog_mpi.map
	$(call say,LINK)
	$(Q)$(SHARE) $(filter %.o %.so,$^) $(MPI_LIBS)
$(B)/product/%.so.0 $(B)/product/%.so: $(B)/product/%.so.$(VERSION)
	$(Q)ln -sf $(<F) $(B)/product/$*.so.0 && ln -sf $(<F) $(B)/product/$*.so
# With -flto among the user's flags: machine code all the same, since names are made local in that only.
WHOLE = $(if $(findstring -flto,$(CFLAGS)),$(CFLAGS) $(if $(findstring clang,$(CC)),,-flinker-output=nolto-rel))
$(B)/product/libeventlog.a: $(NEEDS_eventlog)
	$(call say,AR  )
	$(Q)$(CC) -r -nostdlib $(WHOLE) -o $(@:.a=.o) $(ARCHIVES)
	$(Q)$(OBJCOPY) --localize-hidden $(@:.a=.o)
	$(Q)rm -f $@; $(AR) rcs $@ $(@:.a=.o)
$(B)/product/libeventlog_mpi.a: $(call objects,$(EVENTLOG_MPI_C))
	$(call say,AR  )
	$(Q)rm -f $@; $(AR) rcs $@ $^

# ---- the Python package --------------------------------------------------------------------------------------------
# A wheel runs on other systems, so libeventlog.so and the programs in it contain the libraries that they need.
STATIC_LIBS  = $(addprefix -l:,$(addsuffix .a,$1))
WHEEL        = $(B)/wheel
ANYWHERE     = -Wl,--gc-sections -Wl,--build-id=none
WHEEL_PROGRAMS := $(WHEEL)/bin/eventlog $(if $(CHECKPOINTS),$(WHEEL)/bin/checkpoint)
WHEEL_PACKAGES = zlib1g $(if $(call with,ZSTD),libzstd1) $(if $(call with,DEFLATE),libdeflate0) $(if $(call with,NCURSES),libncursesw6) \
                 $(if $(CHECKPOINTS),libprotobuf-c1 libjansson4)
$(WHEEL)/libeventlog.so.0: $(NEEDS_eventlog) eventlog/libeventlog.map
	$(call say,LINK)
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,--version-script=eventlog/libeventlog.map -Wl,-z$(comma)defs $(ANYWHERE) \
	    -o $@ $(ARCHIVES) $(call STATIC_LIBS,libz $(ZSTD_MODULE) $(DEFLATE_MODULE)) -lm
# Without SQLite, a third of the wheel: Python has one, and pandas writes to it.
$(WHEEL)/format_sqlite.o: eventlog/tool/export/format_sqlite.c Makefile
	$(call say,CC  )
	$(Q)$(CC) $(OURS) -DSQLITE=0 $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
$(WHEEL)/bin/eventlog: $(filter-out %/format_sqlite.o,$(call objects,$(TOOL_C))) $(WHEEL)/format_sqlite.o $(NEEDS_eventlog)
	$(call say,LINK)
	$(Q)$(LINK) $(ANYWHERE) -o $@ $^ $(call STATIC_LIBS,libz $(ZSTD_MODULE) $(DEFLATE_MODULE) \
	    $(if $(call with,NCURSES),libncursesw libtinfo)) $(SYSTEM_base)
$(WHEEL)/bin/checkpoint: $(call objects,$(CHECKPOINT_TOOL_C)) $(NEEDS_checkpoint)
	$(call say,LINK)
	$(Q)$(LINK) $(ANYWHERE) -o $@ $^ $(call STATIC_LIBS,libprotobuf-c libjansson) $(SYSTEM_base)
wheel: $(WHEEL)/libeventlog.so.0 $(WHEEL_PROGRAMS)
	$(Q)python3 -B packaging/make_wheel.py --version $(VERSION) --out $(B) --library $< --programs $(WHEEL_PROGRAMS) \
	    --licenses $(wildcard $(foreach p,$(WHEEL_PACKAGES),/usr/share/doc/$p/copyright))

# ---- a program that needs no library, not even libc, and a source archive ------------------------------------------
# It cannot load librsvg and libarchive. No warnings: SQLite may load extensions, which nobody asks it to do. The same bytes anywhere, as
# it has no build id and no paths.
LATE_OBJECTS = $(B)/static/picture_png.o $(B)/static/log_archive.o
$(B)/static/picture_png.o: eventlog/tool/picture/picture_png.c
$(B)/static/log_archive.o: eventlog/read/log_archive.c
$(LATE_OBJECTS): Makefile
	$(call say,CC  )
	$(Q)mkdir -p $(@D) && $(CC) $(OURS) -DSTATIC=1 $(CPPFLAGS) $(CFLAGS) -c -o $@ $(filter %.c,$^)
$(B)/static/eventlog: $(filter-out %/picture_png.o,$(call objects,$(TOOL_C))) $(LATE_OBJECTS) $(NEEDS_eventlog)
	$(call say,LINK)
	$(Q)$(LINK) -static -s $(ANYWHERE) -Wl,--no-warnings -o $@ $^ $(STATIC_eventlog/tool)
STATIC_LEFT_OUT = $(strip $(foreach p,SQLITE ZSTD DEFLATE NCURSES,$(if $(filter 0,$($p)),$p)))
static: $(B)/static/eventlog
	@printf '%s\n' "$<: runs on every Linux of this kind of processor. It leaves out:" \
	    "  librsvg: no PNG pictures by plot and compare; they write .svg" \
	    "  libarchive: no reading of tar, zip, xz and bzip2" $(foreach p,$(STATIC_LEFT_OUT),"  $(WITHOUT_$p)")
# Of the last commit: times and order are the commit's, so the same commit makes the same bytes.
ARCHIVE = $(B)/evalboard-$(VERSION).tar
dist:
	$(Q)[ -e .git ] || { echo "make dist: this is no git checkout; the archive is made of the files of a commit" >&2; exit 1; }
	$(Q)git diff --quiet HEAD || echo "make dist: what is not committed is left out" >&2
	$(Q)mkdir -p $(B) && git -c tar.umask=0022 archive --format=tar --prefix=evalboard-$(VERSION)/ -o $(ARCHIVE) HEAD
	$(Q)gzip -9nf $(ARCHIVE) && echo "$(ARCHIVE).gz"

# ---- tests: tests/<folder>/test_<module>.c is one program of that folder -------------------------------------------
TEST_FOLDERS = base eventlog eventlog/tool $(if $(call with,NGHTTP2),eventlog/server) checkpoint dataset model trainer evaluator
TEST_C    := $(sort $(foreach f,$(TEST_FOLDERS),$(wildcard tests/$f/test_*.c)))
TESTS     := $(patsubst tests/%.c,$(B)/tests/%,$(TEST_C))
SERVER_FUZZ := $(if $(call with,NGHTTP2),,data_request event_pieces grpc_connection served_events)
FUZZ_C    := $(filter-out $(SERVER_FUZZ:%=tests/fuzz/fuzz_%.c),$(sort $(wildcard tests/fuzz/fuzz_*.c)))
FUZZ      := $(patsubst tests/fuzz/fuzz_%.c,$(B)/fuzz/%,$(FUZZ_C))
# The same harnesses over the inputs in tests/fuzz/corpus, as tests.
REPLAYS   := $(patsubst tests/fuzz/corpus/%.txt,$(B)/tests/fuzz/replay_%,$(filter-out $(SERVER_FUZZ:%=tests/fuzz/corpus/%.txt),$(sort $(wildcard tests/fuzz/corpus/*.txt))))
TESTS     += $(REPLAYS)
DOUBLE_HELPER := $(B)/tests/peers/double_gradient
HELPERS   := $(patsubst %.c,$(B)/%,$(sort $(wildcard tests/programs/*.c tests/peers/*.c tests/faults/*.c tests/mpi/*.c bench/*.c)))

# What has tests that need nothing but these, with another processor's libc, zlib, libpng and cmocka.
CROSS_TESTS = $(filter-out $(if $(call with,PROTOBUF),,%/test_event_encode),$(filter $(B)/tests/base/% $(B)/tests/eventlog/%,$(TESTS)))
cross-programs: $(B)/bin/eventlog $(PRODUCT) $(CROSS_TESTS)
	@echo $(B)/bin/eventlog $(CROSS_TESTS) | tr ' ' '\n' >$(B)/cross-programs
# eventlog, libeventlog and their tests for ARCH, a name of Debian's, run by qemu.
cross:
	$(Q)sh tests/packages/cross.sh $(or $(ARCH),arm64)
# Two builds in two folders have the same bytes; PACKAGES=1: Debian's packages instead.
reproducible:
	$(Q)python3 -B tests/packages/reproducible.py $(if $(PACKAGES),--packages)

# What makes files from decisions (made_*.h), for fuzzers and for tests by seed.
$(call lib,made): $(call objects,$(wildcard tests/fuzz/made_*.c))
$(B)/tests/checkpoint/test_made_checkpoint: $(B)/tests/checkpoint/test_made_checkpoint.o $(call lib,made) $(NEEDS_checkpoint)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(SYSTEM_checkpoint) -lcmocka
$(B)/tests/eventlog/test_made_events: $(B)/tests/eventlog/test_made_events.o $(call lib,made) $(NEEDS_eventlog)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(SYSTEM_eventlog) -lcmocka

# What the fault campaigns load into programs.
INJECTORS := $(patsubst %.c,$(B)/%.so,$(wildcard tests/campaign/*.c))
$(INJECTORS): $(B)/%.so: %.c Makefile
	$(call say,LINK)
	$(Q)$(CC) $(OURS) $(CPPFLAGS) $(CFLAGS) -fPIC -shared -o $@ $< -ldl

define test_rule
$$(B)/tests/$1/%: $$(B)/tests/$1/%.o $$(if $$(filter model,$1),$$(call lib,model-double)) $$(NEEDS_$1)
	$$(call say,LINK)
	$$(Q)$$(LINK) $$(WRAP) -o $$@ $$(filter-out $$(call lib,model-double),$$^) $$(SYSTEM_$1) -lcmocka
endef
$(foreach f,$(TEST_FOLDERS),$(eval $(call test_rule,$f)))
# Ranks that are threads.
$(addprefix $(B)/tests/trainer/test_,clipping decided_updates dense_part gathered_rows hybrid narrowing parameter_rows ring shared_push strategies \
    table_traffic traffic times_exchange trace two_level world): $(B)/tests/trainer/threads.o
# Threads are held back in the middle of a step.
$(B)/tests/trainer/test_mirrored: WRAP = -Wl,--wrap=network_train
# Time passes as the test says.
$(B)/tests/trainer/test_phase_clock: WRAP = -Wl,--wrap=clock_nanoseconds
# Events by hand against events by protobuf-c.
$(B)/tests/eventlog/test_event_encode: SYSTEM_eventlog += $(shell $(CONFIG) --libs libprotobuf-c)
# Our images read by the reference.
$(B)/tests/eventlog/test_image_png: SYSTEM_eventlog += $(shell $(CONFIG) --libs libpng)
$(B)/tests/eventlog/test_event_encode: $(call lib,proto)
wrap = $(addprefix -Wl$(comma)--wrap=,$1)
WRAP_ALLOCATIONS = malloc calloc realloc strdup strndup
WRAP_CALLS = open openat fcntl stat lstat fstat fstatat statfs fstatfs access lseek read pread write realpath opendir readdir \
             pthread_create mmap mremap inotify_init1 inotify_add_watch memfd_create unlink rename fsync
# Allocation fails in these where they say: tests/failing_allocation.h.
$(addprefix $(B)/tests/,base/test_array $(addprefix checkpoint/test_,data_file safetensors_index tensor_match) \
                        $(addprefix dataset/test_,csv fixed_records idx_files image_folder tfrecord) \
                        $(addprefix evaluator/test_,checkpoint_data lookout queue sightings) \
                        $(addprefix eventlog/test_,event_output event_writer_memory log_check log_reader_memory public_merge public_rewrite) \
                        $(addprefix trainer/test_,server_core server_core_decided aggregation arbiter follower saving)): \
	WRAP = $(call wrap,$(WRAP_ALLOCATIONS))
# System calls as well: tests/failing_calls.h.
$(addprefix $(B)/tests/,$(addprefix checkpoint/test_,checkpoint_failing saved_slices) $(addprefix eventlog/test_,log_failing points_failing)): WRAP = $(call wrap,$(WRAP_ALLOCATIONS) $(WRAP_CALLS))
$(B)/tests/trainer/test_saving: WRAP += $(call wrap,mmap statvfs)
# Gradient checks run on the double build of the model.
$(B)/tests/model/test_gradient%: $(B)/double/tests/model/test_gradient%.o $(call lib,model-double) $(NEEDS_base)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(SYSTEM_model) -lcmocka
$(DOUBLE_HELPER): $(B)/%: $(B)/double/%.o $(call lib,model-double) $(NEEDS_base)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(SYSTEM_model)
# Other helper programs of tests and benchmarks link everything.
$(filter-out $(DOUBLE_HELPER),$(HELPERS)): $(B)/%: $(B)/%.o $(call lib,made) $(call lib,evaluator) $(call lib,eventlog_mpi) $(NEEDS_trainer)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(SYSTEM_trainer) $(SYSTEM_eventlog) $(INOTIFY_LIBS) $(MORE_LIBS)
# It packs blocks with snappy itself, for our own code to unpack.
$(B)/tests/peers/bundle_tool: MORE_LIBS = -lsnappy

# ---- rules ---------------------------------------------------------------------------------------------------------
say = @$(if $(V),:,echo "  $1   $@"); mkdir -p $(@D)

MPI_CFLAGS = $(if $(MPICC),$(filter -I% -D%,$(MPI_SHOWN)),$(shell $(CONFIG) --cflags $(MPI_MODULE)))
$(call objects,trainer/collective/ranks.c $(EVENTLOG_MPI_C)): EXTRA = $(MPI_CFLAGS)
$(B)/tests/mpi/%.o $(B)/bench/%.o: EXTRA = $(MPI_CFLAGS)
# Loops over channels and weights become vector code, with square roots (which errno would forbid) and choices (a product
# that is not chosen might set a flag, which nobody reads) in them; what is computed stays the same (no -ffast-math).
# clang knows no cost model.
MODEL_FLAGS ?= -ftree-vectorize $(if $(findstring clang,$(CC)),,-fvect-cost-model=dynamic) -fno-math-errno -fno-trapping-math
$(B)/model/%.o $(B)/double/model/%.o $(B)/tests/model/%.o: EXTRA = -DONEDNN=$(ONEDNN) $(LATE) $(MODEL_FLAGS)
$(B)/trainer/optimizers/%.o: EXTRA = $(MODEL_FLAGS)
$(B)/evaluator/%.o: EXTRA =
$(call objects,$(TOOL_C)): EXTRA = -DSQLITE=$(SQLITE) -DDEFLATE=$(DEFLATE) -DSTATIC=0
$(B)/eventlog/tool/watch/watch_screen_ncurses.o: EXTRA = $(shell $(CONFIG) --cflags ncursesw)
$(call objects,$(EVENTLOG_C)): EXTRA = -DZSTD=$(ZSTD) -DDEFLATE=$(DEFLATE) -DSTATIC=0
# What libeventlog.so is made of.
PIC = -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections
$(B)/base/%.o $(B)/eventlog/%.o $(B)/eventlog_mpi/%.o $(B)/generated/%.o: SHARED = $(PIC)

# Changes when a part that files are compiled for comes or goes; then all is compiled anew.
$(B)/parts: FORCE
	@mkdir -p $(@D); [ "$(INOTIFY)$(ONEDNN)$(SQLITE)$(ZSTD)$(DEFLATE)$(NCURSES)$(MPICC)$(MPI_MODULE)" = "$$(cat $@ 2>/dev/null)" ] || \
	    echo "$(INOTIFY)$(ONEDNN)$(SQLITE)$(ZSTD)$(DEFLATE)$(NCURSES)$(MPICC)$(MPI_MODULE)" >$@
$(B)/%.o: %.c Makefile $(B)/parts
	$(call say,CC  )
	$(Q)$(CC) $(OURS) $(SHARED) $(EXTRA) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(B)/double/%.o: %.c Makefile $(B)/parts
	$(call say,CC  )
	$(Q)$(CC) $(OURS) -DREAL_DOUBLE $(EXTRA) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(B)/generated/proto/%.pb-c.c: proto/%.proto
	$(call say,PROTO)
	$(Q)protoc --c_out=$(B)/generated $<
$(B)/generated/%.o: $(B)/generated/%.c Makefile
	$(call say,CC  )
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -I$(B)/generated $(SHARED) $(NO_PATHS) $(CFLAGS) $(if $(SAN),-fsanitize=$(SAN)) -c -o $@ $<
# Generated headers first: the objects that include them cannot say so before they have been compiled once.
$(call objects,$(CHECKPOINT_C) tests/eventlog/test_event_encode.c tests/programs/eventlog_sample.c): | $(GENERATED)
$(B)/lib/%.a:
	$(call say,AR  )
	$(Q)rm -f $@; $(AR) rcs $@ $^
.SECONDARY:
-include $(shell find $(B) -name '*.d' 2>/dev/null)

# ---- targets -------------------------------------------------------------------------------------------------------
deps:
	@$(if $(MISSING),sh tests/install_packages.sh $(MISSING),:)

ifneq ($(MISSING),)
$(filter-out deps,$(INSTALLS)): deps
	$(Q)$(MAKE) --no-print-directory $@ INSTALLED=yes
else
# With a sanitizer only the C tests run; with that for threads, those of folders with threads or state that threads share.
THREADED = $(patsubst %,$(B)/tests/%,base/% checkpoint/% dataset/% eventlog/% evaluator/% trainer/test_micro_shards trainer/test_mirrored trainer/test_team)
ONE_THREAD = $(B)/tests/eventlog/test_damage_everywhere# and a minute long
TESTS_TO_RUN = $(if $(filter thread,$(SAN)),$(filter-out $(ONE_THREAD),$(filter $(THREADED),$(TESTS))),$(TESTS))
programs-for-tests: $(TESTS_TO_RUN) $(if $(SAN),,all $(HELPERS) $(INJECTORS))
test: programs-for-tests
	$(Q)python3 tests/run.py --build $(B) $(if $(PEERS),--peers $(PEERS)) $(if $(SAN),--sanitizer $(SAN)) $(TEST_ARGS) $(TESTS_TO_RUN)
check: test
# gcc's own record of which lines and branches ran, of what COVERED_TESTS run. Killed processes leave none. Without the
# test that measures how time grows with the log: counting takes time as well.
COVERED_TESTS  = $(filter $(addprefix $(B)/tests/,eventlog/% checkpoint/% fuzz/%),$(TESTS))
COVERED_PYTHON = tests/checkpoint $(filter-out %_growth.py,$(wildcard tests/tool/test_eventlog*.py tests/tool/test_export*.py))
ifeq ($(B),build-coverage)
coverage: programs-for-tests
	$(Q)find $(B) -name '*.gcda' -delete
	$(Q)python3 tests/run.py --build $(B) --folders '$(COVERED_PYTHON)' $(COVERED_TESTS); failed=$$?; \
	    python3 tests/coverage.py --build $(B) $(COVERAGE_ARGS) && exit $$failed
else
coverage:
	$(Q)$(MAKE) --no-print-directory $@ B=build-coverage CFLAGS='-O0 -g --coverage -fprofile-update=atomic'
endif
demo: all
	$(Q)python3 demo/run.py --build $(B) $(DEMO_ARGS)
# With PEERS=all the programs it compares with are installed first, into build/venv.
BENCH_PEERS = tests/requirements/tensorboard.txt tests/requirements/peers.txt bench/requirements.txt
bench: all $(HELPERS)
	$(Q)$(if $(filter all,$(PEERS)),python3 tests/environment.py build/venv $(BENCH_PEERS) >/dev/null)
	$(Q)python3 bench/run.py --build $(B) $(BENCH_ARGS)
# The published comparisons of ways to train, at a size that fits two cores.
tables: all
	$(Q)python3 bench/tables.py --build $(B) $(TABLES_ARGS)
# All programs beside each other, restarted again and again, for SECONDS: they lose nothing, and do not grow.
soak: all
	$(Q)python3 tests/soak/soak.py --build $(B) --seconds $(or $(SECONDS),1800) $(SOAK_ARGS)
# Make the pictures of docs/gallery.md, and TensorBoard's of the same logs beside them in build/gallery.
gallery: $(B)/bin/eventlog
	$(Q)python=$$(python3 tests/environment.py build/venv tests/requirements/tensorboard.txt tests/requirements/test.txt) && \
	    $$python docs/gallery/make.py --build $(B)
# With objects of their own. A crash leaves its input in build/.
fuzz:
	$(Q)$(MAKE) --no-print-directory CC=clang SAN=fuzzer-no-link,address,undefined fuzzers
	$(Q)python3 tests/fuzz/run.py --seconds $(or $(SECONDS),60) build-fuzzer-no-link-address-undefined/fuzz
# None of these files that is damaged may pass as sound.
fuzz-structured:
	$(Q)$(MAKE) --no-print-directory CC=clang SAN=fuzzer-no-link,address,undefined structured-fuzzers
	$(Q)python3 tests/fuzz/run.py --count $(or $(COUNT),1000000) build-fuzzer-no-link-address-undefined/fuzz
# Random faults in all programs for SECONDS, or COUNT of them, from seed SEED on; SEED alone repeats one.
faults: all $(B)/tests/programs/write_events $(B)/tests/programs/write_checkpoint $(INJECTORS)
	$(Q)python3 tests/campaign/campaign.py --build $(B) $(foreach o,SECONDS COUNT SEED JOBS,$(if $($o),--$(shell echo $o | tr A-Z a-z) $($o)))
# The evaluator is killed COUNT times, from seed SEED on; nothing may be lost or doubled.
kills: all $(B)/tests/programs/write_checkpoint $(INJECTORS)
	$(Q)python3 tests/campaign/kills.py --build $(B) $(foreach o,COUNT SEED JOBS,$(if $($o),--$(shell echo $o | tr A-Z a-z) $($o)))
# The same in the ranks of trainings on one host and on two: COUNT in each strategy.
rank-faults: all $(INJECTORS)
	$(Q)EVALBOARD_BUILD=$(B) python3 tests/campaign/rank_campaign.py $(foreach o,COUNT SEED JOBS,$(if $($o),--$(shell echo $o | tr A-Z a-z) $($o))) $(ARGS)
# The same weights from every strategy, number of workers, layout and so on; ARGS: those of the program.
same-bits: all $(INJECTORS)
	$(Q)EVALBOARD_BUILD=$(B) python3 tests/matrix/same_bits.py $(if $(JOBS),--jobs $(JOBS)) $(ARGS)
endif

lint:
	$(Q)python3 tests/lint.py --cc '$(CC)' --mpi='$(strip $(MPI_CFLAGS))'

# Lays C out as .clang-format says.
format:
	$(Q)python3 tests/lint.py --format

# Every parser under libFuzzer (clang).
$(call lib,eventlog-tool): $(filter-out %/main.o,$(call objects,$(TOOL_C)))
HARNESS_NEEDS  = $(call lib,made) $(call lib,evaluator) $(call lib,trainer) $(call lib,model) $(call lib,eventlog-tool) \
                 $(call lib,eventlog-server) $(call lib,eventlog) $(call lib,dataset) $(call lib,checkpoint) $(call lib,proto) $(NEEDS_base)
HARNESS_SYSTEM = $(SYSTEM_evaluator) $(SYSTEM_eventlog/tool) $(NGHTTP2_LIBS)
$(FUZZ): $(B)/fuzz/%: $(B)/tests/fuzz/fuzz_%.o $(HARNESS_NEEDS)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) -fsanitize=fuzzer,address,undefined -o $@ $^ $(HARNESS_SYSTEM)
$(REPLAYS): $(B)/tests/fuzz/replay_%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/replay.o $(HARNESS_NEEDS)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(HARNESS_SYSTEM)
fuzzers: $(FUZZ)
# Files that are made from decisions (made_*.h), by structure: a fuzzer is guided by what it tries out, not by what makes
# its files.
$(B)/tests/fuzz/made_%.o: OURS := $(if $(findstring fuzzer,$(SAN)),$(filter-out -fsanitize=%,$(OURS)),$(OURS))
structured-fuzzers: $(filter $(B)/fuzz/made_%,$(FUZZ))

# Directories are written relative to the file, so that the tree can be used where DESTDIR put it.
$(B)/product/%.pc: packaging/%.pc.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@VERSION@|$(VERSION)|' -e 's|@PRIVATE@|$(strip $(STATIC_eventlog)) -pthread|' \
	    -e 's|@MPI@|$(if $(MPICC),,$(comma) $(MPI_MODULE))|' -e 's|@PREFIX@|$${pcfiledir}/$(shell realpath -sm --relative-to=$(LIBDIR)/pkgconfig $(PREFIX))|' $< >$@
$(B)/product/%.cmake: packaging/%.cmake.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@VERSION@|$(VERSION)|' -e 's|@PRIVATE@|$(subst $() ,;,$(strip $(STATIC_eventlog) -pthread))|' \
	    -e 's|@PREFIX@|$(shell realpath -sm --relative-to=$(LIBDIR)/cmake/eventlog $(PREFIX))|' $< >$@
FORCE:

CMAKE_FILES = $(addprefix $(B)/product/,eventlogConfig.cmake eventlogConfigVersion.cmake)
# What is installed: FROM:FOLDER:MODE a word. Links are made as links.
FILES     = $(CMAKE_FILES:%=%:$(LIBDIR)/cmake/eventlog:644) $(foreach p,$(PROGRAMS),$p:$(PREFIX)/bin:755) $(B)/product/eventlog.h:$(PREFIX)/include/eventlog:644 \
            $(if $(call with,MPI),eventlog_mpi/eventlog_mpi.h:$(PREFIX)/include/eventlog:644) \
            $(foreach l,$(LIBRARIES),examples/fortran/$(l:lib%=%).f90:$(PREFIX)/include/eventlog:644 $(B)/product/$l.a:$(LIBDIR):644 $(B)/product/$l.so.$(VERSION):$(LIBDIR):644 \
            $(B)/product/$(l:lib%=%).pc:$(LIBDIR)/pkgconfig:644)
LINKS     = $(foreach l,$(LIBRARIES),$l.so.$(VERSION):$(LIBDIR)/$l.so.0 $l.so.$(VERSION):$(LIBDIR)/$l.so)
part      = $(word $2,$(subst :, ,$1))

# Man pages and completions come from what the programs say of their options, and from the headers' comments.
DOCUMENTED := $(B)/product/eventlog.h $(if $(call with,MPI),eventlog_mpi/eventlog_mpi.h)
documents: $(B)/documents.stamp
# They are those of programs that run here: of another processor's, this machine's own are built and asked.
DESCRIBED := $(if $(CROSS),build,$(B))
ifneq ($(CROSS),)
described: FORCE
	$(Q)$(MAKE) --no-print-directory CROSS= $(PROGRAMS:$(B)/%=build/%)
endif
$(B)/documents.stamp: $(if $(CROSS),| described)
$(B)/documents.stamp: $(PROGRAMS) $(DOCUMENTED) $(wildcard packaging/*.py) $(wildcard docs/man/*)
	$(call say,DOC )
	$(Q)rm -rf $(B)/man $(B)/completion
	$(Q)python3 -B packaging/make_man.py --bin $(DESCRIBED)/bin --text docs/man --version $(VERSION) --out $(B)/man \
	    $(notdir $(PROGRAMS)) $(DOCUMENTED)
	$(Q)python3 packaging/make_completion.py --bin $(DESCRIBED)/bin --out $(B)/completion $(notdir $(PROGRAMS))
	$(Q)touch $@
# FROM:FOLDER a word; all files of FROM.
DOCUMENTS = $(if $(call with,PYTHON),man/man1:$(PREFIX)/share/man/man1 man/man3:$(PREFIX)/share/man/man3 \
            man/man7:$(PREFIX)/share/man/man7 \
            completion/bash:$(PREFIX)/share/bash-completion/completions \
            completion/zsh:$(PREFIX)/share/zsh/site-functions \
            completion/fish:$(PREFIX)/share/fish/vendor_completions.d)
install: all $(if $(DOCUMENTS),documents) $(CMAKE_FILES) $(foreach l,$(LIBRARIES),$(B)/product/$(l:lib%=%).pc)
	$(Q)$(foreach f,$(FILES),install -D -m $(call part,$f,3) $(call part,$f,1) \
	    $(DESTDIR)$(call part,$f,2)/$(notdir $(call part,$f,1)) &&) :
	$(Q)$(foreach f,$(LINKS),ln -sf $(call part,$f,1) $(DESTDIR)$(call part,$f,2) &&) :
	$(Q)$(foreach d,$(DOCUMENTS),install -d $(DESTDIR)$(call part,$d,2) && \
	    install -m 644 $(B)/$(call part,$d,1)/* $(DESTDIR)$(call part,$d,2) &&) :
	$(Q)$(if $(DESTDIR),:,ldconfig 2>/dev/null || :)
uninstall: $(if $(DOCUMENTS),documents)
	$(Q)rm -f $(foreach f,$(FILES),$(DESTDIR)$(call part,$f,2)/$(notdir $(call part,$f,1))) \
	    $(foreach f,$(LINKS),$(DESTDIR)$(call part,$f,2))
	$(Q)$(foreach d,$(DOCUMENTS),(cd $(B)/$(call part,$d,1) && for f in *; do \
	    rm -f $(DESTDIR)$(call part,$d,2)/"$$f"; done);)
	$(Q)rmdir $(DESTDIR)$(PREFIX)/include/eventlog $(DESTDIR)$(LIBDIR)/cmake/eventlog 2>/dev/null || :

clean:
	rm -rf build-* $(addprefix build/,parts bin lib product wheel static man completion documents.stamp tests generated double fuzz base eventlog \
	    eventlog_mpi checkpoint dataset model trainer evaluator bench gallery tables) build/evalboard-*

# For editors and language servers: how each file is compiled.
compdb:
	$(Q)$(MAKE) --no-print-directory -nB V=1 programs-for-tests INSTALLED=yes | python3 packaging/make_compile_commands.py >compile_commands.json

define HELP
make [TARGET...] [VARIABLE=VALUE...]

Build
  all              build the programs in build/bin and the libraries (default)
  documents        make man pages and completions: build/man, build/completion
  install          install everything, where PREFIX, LIBDIR and DESTDIR say
  uninstall        remove what install has installed
  wheel            make the Python package, build/evalboard-*.whl
  static           make build/static/eventlog, which needs no library
  dist             make a source archive of the last commit,
                   build/evalboard-VERSION.tar.gz
  compdb           write compile_commands.json, for editors
  clean            remove what was built, except build/venv
  deps             install the Debian packages that building needs
Try
  demo             train three ways, evaluate, draw a picture of the curves
                   DEMO_ARGS='--help': its options
  gallery          make the pictures of docs/gallery.md in build/gallery
Check
  test             run the tests. PEERS=all: also those with TensorFlow, PyTorch
                   and safetensors; SAN=address,undefined or SAN=thread: the C
                   tests with sanitizers; TEST_ARGS='--only WORD': some of them
  check            the same as test
  coverage         which branches of the readers and of checkpoint/ tests take
                   (gcc), in build-coverage; fails below 95 %.
                   COVERAGE_ARGS='--uncovered WORD': those of files with WORD
                   in their names that no test runs
  lint             only check the rules of the sources
  format           lay C out as .clang-format says
  cross            build eventlog and libeventlog for ARCH (arm64), and run
                   their C tests with qemu
  reproducible     build in two folders and compare; PACKAGES=1: .debs
  fuzz             run each parser under libFuzzer for SECONDS (60)
  fuzz-structured  test COUNT (1000000) made checkpoints and event files each
  faults           make random faults in all programs for SECONDS (60), or COUNT
                   from SEED on, JOBS at a time; only SEED: repeat that one
  kills            kill the evaluator COUNT (2000) times from SEED on, JOBS at a
                   time: nothing may be lost or doubled
  rank-faults      kill, stop and cut off ranks, COUNT (10) times in each
                   strategy, from SEED on, JOBS at a time; only SEED: as above
  same-bits        compare the weights of all strategies, JOBS at a time (hours)
                   ARGS='--help': its options; goes on where it was ended
  soak             run all programs together for SECONDS (1800)
                   SOAK_ARGS='--help': its options
  bench            measure the speed; PEERS=all: of other programs, too
                   BENCH_ARGS='--only NAME': one; BENCH_ARGS=--help: all names
  tables           make the five published comparisons of ways to train again,
                   small: each published row, ours under it, the ratio
                   TABLES_ARGS='--only NAME': one; TABLES_ARGS=--help: all
Variables
  V=1              show commands
  CI=1, WERROR=1   warnings are errors
  MPI=0, ...       build without a part: $(wordlist 1,5,$(PARTS))
                   $(wordlist 6,11,$(PARTS))
                   $(wordlist 12,99,$(PARTS))
  MPI_MODULE=NAME  build with this MPI, by its name for pkg-config: ompi-c
                   (Open MPI, the first choice) or mpich
  MPICC=COMPILER   build with the MPI of this compiler, wherever it is
  CC, CFLAGS, LDFLAGS, PREFIX (/usr/local), LIBDIR, DESTDIR, B (build)
  CROSS=PREFIX-    build for another processor, in build-PREFIX
endef
help:
	$(info $(HELP))@:

.PHONY: all deps test check coverage demo bench tables soak gallery lint format wheel static dist cross cross-programs reproducible fuzz fuzz-structured fuzzers structured-fuzzers faults kills rank-faults same-bits install uninstall \
    documents compdb clean help FORCE programs-for-tests
