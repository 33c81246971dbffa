! eventlog.f90 - libeventlog from Fortran 2008: a type with procedures over the functions of eventlog/eventlog.h.
!
!   gfortran -o mine $(pkg-config --variable=includedir eventlog)/eventlog/eventlog.f90 mine.f90 \
!       $(pkg-config --libs eventlog)
!
! Where `status` is given it is 0, or one of the negative EVENTLOG_ERROR_ codes of eventlog.h, with a sentence in
! `message`; where it is not, an error ends the program with that sentence. `step` is a default integer, with scalars
! also one of 64 bits. `wall_time` is in seconds since 1970; without it the time of the call is taken. One writer is for
! one thread at a time.
module eventlog
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64, real32, real64
    implicit none
    private
    public :: eventlog_writer, eventlog_error, eventlog_finish

    type, bind(C) :: eventlog_error ! struct eventlog_error
        integer(c_int) :: code = 0
        integer(c_int) :: system = 0
        character(kind=c_char) :: message(480) = c_null_char
    end type

    type :: eventlog_writer
        type(c_ptr) :: handle = c_null_ptr ! struct eventlog_writer *
    contains
        procedure :: open => writer_open
        procedure, private :: scalar_32, scalar_64, scalar_32_long, scalar_64_long
        generic :: scalar => scalar_32, scalar_64, scalar_32_long, scalar_64_long
        procedure, private :: histogram_32, histogram_64
        generic :: histogram => histogram_32, histogram_64
        procedure :: text => writer_text
        procedure :: flush => writer_flush
        procedure :: close => writer_close
    end type

    interface
        function c_open(out, directory, options, error) bind(C, name="eventlog_writer_open") result(rc)
            import :: c_ptr, c_char, c_int, eventlog_error
            type(c_ptr), intent(out) :: out
            character(kind=c_char), intent(in) :: directory(*)
            type(c_ptr), value :: options
            type(eventlog_error), intent(inout) :: error
            integer(c_int) :: rc
        end function
        function c_scalar(writer, tag, step, wall_time, value, error) bind(C, name="eventlog_writer_scalar") result(rc)
            import :: c_ptr, c_char, c_int, c_int64_t, c_double, c_float, eventlog_error
            type(c_ptr), value :: writer
            character(kind=c_char), intent(in) :: tag(*)
            integer(c_int64_t), value :: step
            real(c_double), value :: wall_time
            real(c_float), value :: value
            type(eventlog_error), intent(inout) :: error
            integer(c_int) :: rc
        end function
        function c_histogram_floats(writer, tag, step, wall_time, values, n, options, error) &
            bind(C, name="eventlog_writer_histogram_floats") result(rc)
            import :: c_ptr, c_char, c_int, c_int64_t, c_double, c_float, c_size_t, eventlog_error
            type(c_ptr), value :: writer, options
            character(kind=c_char), intent(in) :: tag(*)
            integer(c_int64_t), value :: step
            real(c_double), value :: wall_time
            real(c_float), intent(in) :: values(*)
            integer(c_size_t), value :: n
            type(eventlog_error), intent(inout) :: error
            integer(c_int) :: rc
        end function
        function c_histogram_doubles(writer, tag, step, wall_time, values, n, options, error) &
            bind(C, name="eventlog_writer_histogram_doubles") result(rc)
            import :: c_ptr, c_char, c_int, c_int64_t, c_double, c_size_t, eventlog_error
            type(c_ptr), value :: writer, options
            character(kind=c_char), intent(in) :: tag(*)
            integer(c_int64_t), value :: step
            real(c_double), value :: wall_time
            real(c_double), intent(in) :: values(*)
            integer(c_size_t), value :: n
            type(eventlog_error), intent(inout) :: error
            integer(c_int) :: rc
        end function
        function c_text(writer, tag, step, wall_time, text, options, error) bind(C, name="eventlog_writer_text") &
            result(rc)
            import :: c_ptr, c_char, c_int, c_int64_t, c_double, eventlog_error
            type(c_ptr), value :: writer, options
            character(kind=c_char), intent(in) :: tag(*), text(*)
            integer(c_int64_t), value :: step
            real(c_double), value :: wall_time
            type(eventlog_error), intent(inout) :: error
            integer(c_int) :: rc
        end function
        function c_flush(writer, error) bind(C, name="eventlog_writer_flush") result(rc)
            import :: c_ptr, c_int, eventlog_error
            type(c_ptr), value :: writer
            type(eventlog_error), intent(inout) :: error
            integer(c_int) :: rc
        end function
        function c_close(writer, error) bind(C, name="eventlog_writer_close") result(rc)
            import :: c_ptr, c_int, eventlog_error
            type(c_ptr), value :: writer
            type(eventlog_error), intent(inout) :: error
            integer(c_int) :: rc
        end function
    end interface

contains

    ! Hands an outcome to the caller, or ends the program where it does not ask for one.
    subroutine eventlog_finish(rc, error, status, message)
        integer(c_int), intent(in) :: rc
        type(eventlog_error), intent(in) :: error
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message
        character(len=480) :: sentence
        integer :: i

        sentence = ""
        if (rc /= 0) then
            do i = 1, size(error%message)
                if (error%message(i) == c_null_char) exit
                sentence(i:i) = error%message(i)
            end do
        end if
        if (present(status)) status = int(rc)
        if (present(message)) message = sentence
        if (rc /= 0 .and. .not. present(status)) then
            write (error_unit, "(a)") "eventlog: " // trim(sentence)
            error stop 1
        end if
    end subroutine

    real(c_double) function given(wall_time)
        real(real64), intent(in), optional :: wall_time

        given = 0
        if (present(wall_time)) given = wall_time
    end function

    ! A writer that is not open is refused here; the library is never handed a null pointer.
    logical function is_open(writer, rc, error)
        class(eventlog_writer), intent(in) :: writer
        integer(c_int), intent(out) :: rc
        type(eventlog_error), intent(inout) :: error
        character(len=*), parameter :: words = "the writer is not open"
        integer :: i

        is_open = c_associated(writer%handle)
        rc = 0
        if (is_open) return
        rc = -4
        error%code = rc
        do i = 1, len(words)
            error%message(i) = words(i:i)
        end do
        error%message(len(words) + 1) = c_null_char
    end function

    subroutine writer_open(self, directory, status, message)
        class(eventlog_writer), intent(inout) :: self
        character(len=*), intent(in) :: directory
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message
        type(eventlog_error) :: error
        integer(c_int) :: rc

        rc = c_open(self%handle, trim(directory) // c_null_char, c_null_ptr, error)
        if (rc /= 0) self%handle = c_null_ptr
        call eventlog_finish(rc, error, status, message)
    end subroutine

    subroutine scalar_32_long(self, tag, step, value, wall_time, status, message)
        class(eventlog_writer), intent(in) :: self
        character(len=*), intent(in) :: tag
        integer(int64), intent(in) :: step
        real(real32), intent(in) :: value
        real(real64), intent(in), optional :: wall_time
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message
        type(eventlog_error) :: error
        integer(c_int) :: rc

        if (is_open(self, rc, error)) rc = c_scalar(self%handle, trim(tag) // c_null_char, step, given(wall_time), value, &
                                                    error)
        call eventlog_finish(rc, error, status, message)
    end subroutine

    subroutine scalar_32(self, tag, step, value, wall_time, status, message)
        class(eventlog_writer), intent(in) :: self
        character(len=*), intent(in) :: tag
        integer(int32), intent(in) :: step
        real(real32), intent(in) :: value
        real(real64), intent(in), optional :: wall_time
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message

        call self%scalar_32_long(tag, int(step, int64), value, wall_time, status, message)
    end subroutine

    ! TensorBoard shows 32 bits of a scalar, and so many are written.
    subroutine scalar_64(self, tag, step, value, wall_time, status, message)
        class(eventlog_writer), intent(in) :: self
        character(len=*), intent(in) :: tag
        integer(int32), intent(in) :: step
        real(real64), intent(in) :: value
        real(real64), intent(in), optional :: wall_time
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message

        call self%scalar_32_long(tag, int(step, int64), real(value, real32), wall_time, status, message)
    end subroutine

    subroutine scalar_64_long(self, tag, step, value, wall_time, status, message)
        class(eventlog_writer), intent(in) :: self
        character(len=*), intent(in) :: tag
        integer(int64), intent(in) :: step
        real(real64), intent(in) :: value
        real(real64), intent(in), optional :: wall_time
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message

        call self%scalar_32_long(tag, step, real(value, real32), wall_time, status, message)
    end subroutine

    subroutine histogram_32(self, tag, step, values, wall_time, status, message)
        class(eventlog_writer), intent(in) :: self
        character(len=*), intent(in) :: tag
        integer, intent(in) :: step
        real(real32), intent(in) :: values(:)
        real(real64), intent(in), optional :: wall_time
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message
        type(eventlog_error) :: error
        integer(c_int) :: rc

        if (is_open(self, rc, error)) &
            rc = c_histogram_floats(self%handle, trim(tag) // c_null_char, int(step, c_int64_t), given(wall_time), values, &
                                    size(values, kind=c_size_t), c_null_ptr, error)
        call eventlog_finish(rc, error, status, message)
    end subroutine

    subroutine histogram_64(self, tag, step, values, wall_time, status, message)
        class(eventlog_writer), intent(in) :: self
        character(len=*), intent(in) :: tag
        integer, intent(in) :: step
        real(real64), intent(in) :: values(:)
        real(real64), intent(in), optional :: wall_time
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message
        type(eventlog_error) :: error
        integer(c_int) :: rc

        if (is_open(self, rc, error)) &
            rc = c_histogram_doubles(self%handle, trim(tag) // c_null_char, int(step, c_int64_t), given(wall_time), values, &
                                     size(values, kind=c_size_t), c_null_ptr, error)
        call eventlog_finish(rc, error, status, message)
    end subroutine

    subroutine writer_text(self, tag, step, text, wall_time, status, message)
        class(eventlog_writer), intent(in) :: self
        character(len=*), intent(in) :: tag, text
        integer, intent(in) :: step
        real(real64), intent(in), optional :: wall_time
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message
        type(eventlog_error) :: error
        integer(c_int) :: rc

        if (is_open(self, rc, error)) &
            rc = c_text(self%handle, trim(tag) // c_null_char, int(step, c_int64_t), given(wall_time), &
                        trim(text) // c_null_char, c_null_ptr, error)
        call eventlog_finish(rc, error, status, message)
    end subroutine

    subroutine writer_flush(self, status, message)
        class(eventlog_writer), intent(in) :: self
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message
        type(eventlog_error) :: error
        integer(c_int) :: rc

        if (is_open(self, rc, error)) rc = c_flush(self%handle, error)
        call eventlog_finish(rc, error, status, message)
    end subroutine

    subroutine writer_close(self, status, message)
        class(eventlog_writer), intent(inout) :: self
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message
        type(eventlog_error) :: error
        integer(c_int) :: rc

        rc = c_close(self%handle, error)
        self%handle = c_null_ptr
        call eventlog_finish(rc, error, status, message)
    end subroutine
end module
