! curves DIRECTORY - a simulation that leaves curves for TensorBoard.
! gfortran -o curves $(pkg-config --variable=includedir eventlog)/eventlog/eventlog.f90 curves.f90 \
!     $(pkg-config --libs eventlog)
program curves
    use eventlog
    implicit none
    type(eventlog_writer) :: log
    character(len=1024) :: directory, message
    real(8) :: field(1000)
    integer :: step, i, status

    call get_command_argument(1, directory)
    call log%open(directory, status=status, message=message)
    if (status /= 0) then
        write (0, "(a)") "curves: " // trim(message)
        stop 1
    end if
    call log%text("notes", 0, "a field that comes to *rest*")
    do step = 0, 99
        do i = 1, size(field)
            field(i) = sin(0.01d0 * i) / (1 + step)
        end do
        call log%scalar("energy", step, sum(field**2))
        if (mod(step, 10) == 0) call log%histogram("field", step, field)
    end do
    call log%close()
end program
