! eventlog_mpi.f90 - libeventlog_mpi from Fortran 2008, beside eventlog.f90: curves reduced over the ranks of an MPI job.
!
!   mpifort -o mine $(pkg-config --variable=includedir eventlog)/eventlog/{eventlog,eventlog_mpi}.f90 mine.f90 \
!       $(pkg-config --libs eventlog_mpi)
!
! All procedures are collective, as eventlog_mpi.h describes; errors as in eventlog.f90, the same on every rank.
module eventlog_mpi
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: real64
    use eventlog, only: eventlog_error, eventlog_finish
    implicit none
    private
    public :: eventlog_mpi_writer

    integer, parameter, public :: eventlog_mpi_mean = 0, eventlog_mpi_sum = 1, eventlog_mpi_min = 2, eventlog_mpi_max = 3

    type :: eventlog_mpi_writer
        type(c_ptr) :: handle = c_null_ptr ! struct eventlog_mpi *
    contains
        procedure :: open => mpi_writer_open
        procedure :: scalar => mpi_writer_scalar
        procedure :: close => mpi_writer_close
    end type

    interface
        function c_open(out, comm, directory, options, error) bind(C, name="eventlog_mpi_open_fortran") result(rc)
            import :: c_ptr, c_char, c_int, eventlog_error
            type(c_ptr), intent(out) :: out
            integer(c_int), value :: comm
            character(kind=c_char), intent(in) :: directory(*)
            type(c_ptr), value :: options
            type(eventlog_error), intent(inout) :: error
            integer(c_int) :: rc
        end function
        function c_scalar(log, tag, step, wall_time, value, operation, error) bind(C, name="eventlog_mpi_scalar") &
            result(rc)
            import :: c_ptr, c_char, c_int, c_int64_t, c_double, eventlog_error
            type(c_ptr), value :: log
            character(kind=c_char), intent(in) :: tag(*)
            integer(c_int64_t), value :: step
            real(c_double), value :: wall_time, value
            integer(c_int), value :: operation
            type(eventlog_error), intent(inout) :: error
            integer(c_int) :: rc
        end function
        function c_close(log, error) bind(C, name="eventlog_mpi_close") result(rc)
            import :: c_ptr, c_int, eventlog_error
            type(c_ptr), value :: log
            type(eventlog_error), intent(inout) :: error
            integer(c_int) :: rc
        end function
    end interface

contains

    ! communicator: as `use mpi` has it; with `use mpi_f08` its member mpi_val.
    subroutine mpi_writer_open(self, directory, communicator, status, message)
        class(eventlog_mpi_writer), intent(inout) :: self
        character(len=*), intent(in) :: directory
        integer, intent(in) :: communicator
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message
        type(eventlog_error) :: error
        integer(c_int) :: rc

        rc = c_open(self%handle, int(communicator, c_int), trim(directory) // c_null_char, c_null_ptr, error)
        if (rc /= 0) self%handle = c_null_ptr
        call eventlog_finish(rc, error, status, message)
    end subroutine

    subroutine mpi_writer_scalar(self, tag, step, value, operation, wall_time, status, message)
        class(eventlog_mpi_writer), intent(in) :: self
        character(len=*), intent(in) :: tag
        integer, intent(in) :: step, operation
        real(real64), intent(in) :: value
        real(real64), intent(in), optional :: wall_time
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message
        type(eventlog_error) :: error
        real(c_double) :: time
        integer(c_int) :: rc

        time = 0
        if (present(wall_time)) time = wall_time
        rc = c_scalar(self%handle, trim(tag) // c_null_char, int(step, c_int64_t), time, real(value, c_double), &
                      int(operation, c_int), error)
        call eventlog_finish(rc, error, status, message)
    end subroutine

    subroutine mpi_writer_close(self, status, message)
        class(eventlog_mpi_writer), intent(inout) :: self
        integer, intent(out), optional :: status
        character(len=*), intent(out), optional :: message
        type(eventlog_error) :: error
        integer(c_int) :: rc

        rc = c_close(self%handle, error)
        self%handle = c_null_ptr
        call eventlog_finish(rc, error, status, message)
    end subroutine
end module
